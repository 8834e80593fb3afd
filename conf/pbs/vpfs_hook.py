"""Registers a job of OpenPBS with every proxy of the site, and ends that.

  qmgr -c "create hook vpfs event='execjob_begin,execjob_end,execjob_abort'"
  qmgr -c "import hook vpfs application/x-python default vpfs_hook.py"

It always accepts: a proxy that does not answer must not keep a job from starting. What went wrong
is in the system's log. pbs_mom runs it on each node of a job, and the mother superior speaks for
all. docs/admin/batch-systems.md says more.
"""
import subprocess
import syslog

import pbs

VPFSCTL = "/usr/bin/vpfsctl"
VPFS_TARGETS = "--all"  # which proxies to reach
VPFS_JOB_WORDS = ""  # words of a rule for each job, such as "weight=2"
VPFS_BOUNDS = ""  # what users may wish, such as "weight=1..8 rate=..500MiB/s"
WISHES = ("weight", "rate", "deadline")
LONGEST = 1000  # bytes of what a user says; vpfsctl takes much less
PATIENCE = 15  # seconds; vpfsctl gives up before, and the alarm of a hook comes after 30


def argument(value):
    """What a user says, as an argument of a command: any text may be in a job's variables."""
    text = str(value)[:LONGEST].encode("ascii", "replace").decode("ascii")
    return text.replace("\0", "?")


def hosts_of(job):
    """["n1", "n2"] of "n1/0*2+n2/0*2", which may also have ports: "n1:15002/0+n2:15002/0"."""
    text = str(job.exec_host2 or job.exec_host)
    hosts = []
    for part in text.split("+"):
        host = part.split("/")[0].split(":")[0].strip("()")
        if host not in hosts:
            hosts.append(host)
    return hosts


def wishes_of(job):
    """What `qsub -v VPFS_WEIGHT=4` asks for."""
    words = []
    for wish in WISHES:
        try:
            value = job.Variable_List["VPFS_" + wish.upper()]
        except (KeyError, TypeError):
            continue
        if value:
            words += ["--wish", "{}={}".format(wish, argument(value))]
    return words


def limit_of(job):
    try:
        seconds = int(job.Resource_List["walltime"])
    except (KeyError, TypeError, ValueError):
        return []
    return ["--time-limit", "{}s".format(seconds)] if seconds > 0 else []


def start(job):
    hosts = hosts_of(job)
    words = ["--nodes", str(len(hosts)), "--uid", str(job.euser), "--clients", ",".join(hosts),
             "--account", argument(job.Account_Name or job.project or ""), "--bounds", VPFS_BOUNDS]
    if job.egroup:
        words += ["--gid", str(job.egroup)]
    return words + limit_of(job) + wishes_of(job) + VPFS_JOB_WORDS.split()


def tell(verb, job):
    """What went wrong."""
    words = start(job) if verb == "start" else []
    command = [VPFSCTL] + VPFS_TARGETS.split() + ["job", verb, str(job.id), "--best-effort"] + words
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=PATIENCE)
    problem = done.stderr.strip()
    return problem or ("vpfsctl: exit code {}".format(done.returncode) if done.returncode else "")


def main(event):
    verb = "start" if event.type == pbs.EXECJOB_BEGIN else "stop"
    try:
        if not event.job.in_ms_mom():
            return
        problem = tell(verb, event.job)
    except Exception as error:  # whatever it is, the job goes on
        problem = "{}: {}".format(type(error).__name__, error)
    if problem:
        problem = "job {}: vpfsctl job {}: {}".format(event.job.id, verb, problem)
        syslog.openlog("vpfs-pbs", 0, syslog.LOG_DAEMON)
        syslog.syslog(syslog.LOG_WARNING, problem)
        pbs.logmsg(pbs.LOG_WARNING, problem)


main(pbs.event())
pbs.event().accept()
