#!/usr/bin/env python3
"""Makes the manual page and the completions of a program from its own option definitions.

describe_program.py DESCRIPTION PAGE.in PAGE BASH ZSH FISH: DESCRIPTION is what the program prints with
--describe-options (base/command_line.h says how). In PAGE.in, the lines @OPTIONS@ and @COMMANDS@
stand for the lists of them.
"""
from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex
import sys

import describe_shells

# Words of a live vpfs that complete an argument: program, command, argument -> command that prints them.
LIVE_WORDS = {
    ("vpfsctl", "rule change", "NAME"): "rule list --names",
    ("vpfsctl", "rule stop", "NAME"): "rule list --names",
    ("vpfsctl", "job stop", "JOBID"): "job list --names",
}
# Options that the command behind LIVE_WORDS needs as well.
LIVE_OPTIONS = {"--proxy", "--proxies", "--all", "--certificate", "--key", "--ca"}
FIXED_WORDS = {("vpfsctl", "bypass", "STATE"): "on off", ("vpfsctl", "", "--sort"): "bytes iops queue wait share name"}


@dataclasses.dataclass
class Option:
    names: list[str]
    value: str  # "" for a flag
    about: str


@dataclasses.dataclass
class Argument:
    name: str
    count: str
    about: str


@dataclasses.dataclass
class Command:
    name: str  # its words; "" for the program itself
    about: str
    options: list[Option] = dataclasses.field(default_factory=list)
    arguments: list[Argument] = dataclasses.field(default_factory=list)


def read(text: str) -> tuple[str, dict[str, Command]]:
    """The program's name, and its commands in their order."""
    program, commands = "", {}
    for line in text.splitlines():
        kind, *parts = line.split("\t")
        if kind == "program":
            program, commands = parts[0], {"": Command("", parts[1])}
        elif kind == "command":
            commands[parts[0]] = Command(parts[0], parts[1])
        elif kind == "option":
            names = parts[1].split(",")
            # Each command has --help; the program's stands for all.
            if not parts[0] or "--help" not in names:
                commands[parts[0]].options.append(Option(names, parts[2], parts[3]))
        elif kind == "argument":
            commands[parts[0]].arguments.append(Argument(parts[1], parts[2], parts[3]))
        else:
            raise SystemExit(f"describe_program.py: unknown line: {line}")
    return program, commands


# --- Manual page, in mdoc(7) --------------------------------------------------------------------


def sentence(text: str) -> str:
    text = text.strip().replace("\\", "\\e")
    if "=" not in text.split(" ")[0]:  # such as weight=4
        text = text[:1].upper() + text[1:]
    text += "" if text.endswith((".", "!", "?")) else "."
    return "\\&" + text if text[0] in ".'" else text


def flags(option: Option) -> str:
    value = f" Ar {option.value.lower()}" if option.value else ""
    return " , ".join(f"Fl {name[1:]}{value}" for name in option.names)


def option_list(options: list[Option]) -> list[str]:
    if not options:
        return []
    lines = [".Bl -tag -width Ds"]
    for option in options:
        lines += [f".It {flags(option)}", sentence(option.about)]
    return [*lines, ".El"]


def synopsis(command: Command) -> str:
    parts = [f"Cm {command.name}"]
    for option in command.options:
        parts.append(f"Op {flags(option)}")
    for argument in command.arguments:
        name = f"Ar {argument.name.lower()}"
        parts.append({"one": name, "optional": f"Op {name}", "any": f"Op {name} ..."}[argument.count])
    return " ".join(parts)


def command_list(commands: dict[str, Command]) -> list[str]:
    lines = [".Bl -tag -width Ds"]
    for command in commands.values():
        is_group = any(name.startswith(command.name + " ") for name in commands)
        if not command.name or is_group:
            continue
        lines += [f".It Xo Cm {command.name}"]
        for argument in command.arguments:
            name = f"Ar {argument.name.lower()}"
            lines.append({"one": f".{name}", "optional": f".Op {name}", "any": f".Op {name} ..."}[argument.count])
        lines += [".Xc", sentence(command.about)]
        details = [f".It {flags(option)}\n{sentence(option.about)}" for option in command.options]
        details += [f".It Ar {argument.name.lower()}\n{sentence(argument.about)}" for argument in command.arguments]
        if details:
            lines += [".Bl -tag -width Ds -compact", *details, ".El"]
    return [*lines, ".El"]


def page(source: str, commands: dict[str, Command]) -> str:
    lines = []
    for line in source.splitlines():
        if line == "@OPTIONS@":
            lines += option_list(commands[""].options)
        elif line == "@COMMANDS@":
            lines += command_list(commands)
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


# --- Completion ---------------------------------------------------------------------------------


def words_of(commands: dict[str, Command], command: str) -> list[str]:
    """What may follow the words of this command: its options, the program's, and further words."""
    depth = command.count(" ") + 1 if command else 0
    further = [name.split(" ")[-1] for name in commands
               if name and name.count(" ") == depth and (not command or name.startswith(command + " "))]
    options = [name for of in dict.fromkeys(["", command]) for option in commands[of].options for name in option.names]
    return [*further, *options]


def completion(program: str, commands: dict[str, Command]) -> str:
    function = "_" + re.sub(r"\W", "_", program)
    every = [(of.name, option) for of in commands.values() for option in of.options]
    with_value = sorted({name for _, option in every if option.value for name in option.names})
    files = sorted({name for _, option in every if option.value in ("FILE", "ENDPOINT") for name in option.names})
    live = sorted({name for _, option in every for name in option.names} & LIVE_OPTIONS)
    flags_of_live = sorted(name for name in live if name not in with_value)
    lines = [
        f"# Completion of {program} for bash, made from the program's own options.",
        f"{function}() {{",
        "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
        "  local command='' arguments=0 i proxies=()",
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        "    case ${COMP_WORDS[i]} in",
    ]
    if live:
        valued = [name for name in live if name in with_value]
        lines += [f"      {'|'.join(valued)}) proxies+=(\"${{COMP_WORDS[i]}}\" \"${{COMP_WORDS[i+1]}}\"); ((i++)) ;;"]
        lines += [f"      {'|'.join(flags_of_live)}) proxies+=(\"${{COMP_WORDS[i]}}\") ;;"] if flags_of_live else []
    if others := [name for name in with_value if name not in live]:
        lines += [f"      {'|'.join(others)}) ((i++)) ;;"]
    lines += ["      -*) ;;", "      *)", "        case \"$command ${COMP_WORDS[i]}\" in"]
    for name in commands:
        if name:
            group, _, last = name.rpartition(" ")
            lines += [f"          {shlex.quote(group + ' ' + last)}) command={shlex.quote(name)} ;;"]
    lines += ["          *) ((arguments++)) ;;", "        esac ;;", "    esac", "  done", "  COMPREPLY=()",
              "  case $before in"]
    for (owner, of, name), words in FIXED_WORDS.items():
        if owner == program and name.startswith("-"):
            lines += [f"    {name}) mapfile -t COMPREPLY < <(compgen -W {shlex.quote(words)} -- \"$word\"); return ;;"]
    if files:
        lines += [f"    {'|'.join(files)}) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;"]
    known = {name for (owner, _, name) in FIXED_WORDS if owner == program}
    if rest := [name for name in with_value if name not in files and name not in known]:
        lines += [f"    {'|'.join(rest)}) return ;;"]
    lines += ["    *) ;;", "  esac", "  case $command in"]
    for name, command in commands.items():
        lines += [f"    {shlex.quote(name)})",
                  f"      mapfile -t COMPREPLY < <(compgen -W {shlex.quote(' '.join(words_of(commands, name)))} -- \"$word\")"]
        lines += argument_words(program, command)
        lines += ["      ;;"]
    lines += ["    *) ;;", "  esac", "}", f"complete -F {function} {program}"]
    return "\n".join(lines) + "\n"


def argument_words(program: str, command: Command) -> list[str]:
    lines = []
    for position, argument in enumerate(command.arguments):
        key = (program, command.name, argument.name)
        if key in LIVE_WORDS:
            # A proxy that is not there gives no words. Names are not given to compgen, which would
            # run what is in them.
            source = f'{program} "${{proxies[@]}}" --timeout 1s {LIVE_WORDS[key]} 2>/dev/null'
            what = ["while IFS= read -r i; do",
                    '  [[ $i == "$word"* ]] && COMPREPLY+=("$(printf %q "$i")")',
                    f"done < <({source})"]
        elif key in FIXED_WORDS:
            words = shlex.quote(FIXED_WORDS[key])
            what = [f'mapfile -t COMPREPLY < <(compgen -W {words} -- "$word")']
        else:
            continue
        condition = f"arguments == {position}" if argument.count == "one" else f"arguments >= {position}"
        lines += [f"      if [[ $word != -* ]] && (({condition})); then", *(f"        {line}" for line in what),
                  "      fi"]
    return lines


def main() -> int:
    description, source, page_file, *completions = (pathlib.Path(argument) for argument in sys.argv[1:7])
    program, commands = read(description.read_text())
    shells = describe_shells.Program(program, commands, LIVE_WORDS, LIVE_OPTIONS, FIXED_WORDS)
    page_file.parent.mkdir(parents=True, exist_ok=True)
    page_file.write_text(page(source.read_text(), commands))
    texts = (completion(program, commands), describe_shells.zsh(shells), describe_shells.fish(shells))
    for file, text in zip(completions, texts, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
