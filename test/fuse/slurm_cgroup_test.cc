#include "fuse/slurm_cgroup.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vpfs::fuse {
namespace {

std::string job_in(const std::string& text) {
  return std::string(slurm_job_in(text).value_or("none"));
}

TEST(SlurmCgroup, AJobIsInOneOfSlurmsOwnGroups) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"0::/system.slice/slurmstepd.scope/job_123/step_0/user/task_0\n", "123"},
      {"0::/system.slice/slurmstepd.scope/job_123/step_extern/user/task_special\n", "123"},
      {"0::/system.slice/slurmstepd.scope/job_4294967295\n", "4294967295"},
      {"0::/system.slice/n1_slurmstepd.scope/job_7/step_batch/user/task_0\n", "7"},
      {"4:memory:/slurm/uid_1001/job_123/step_0/task_0\n", "123"},
      {"4:cpu,cpuacct:/slurm/uid_0/job_9\n", "9"},
      {"4:freezer:/slurm_n1/uid_1001/job_123/step_batch\n", "123"},
      // The batch system's line is one of many.
      {"9:name=systemd:/system.slice/slurmd.service\n4:freezer:/slurm/uid_1/job_5/step_0\n0::/\n",
       "5"},
      // A job's process that makes groups of its own within the job.
      {"0::/system.slice/slurmstepd.scope/job_123/step_0/user/job_999\n", "123"},
      {"0::/system.slice/slurmstepd.scope/job_1/step_0/system.slice/slurmstepd.scope/job_2\n", "1"},
  };
  for (const auto& [text, job] : cases) EXPECT_EQ(job_in(text), job) << text;
}

TEST(SlurmCgroup, GroupsThatUsersCanMakeDoNotCount) {
  const std::string delegated = "0::/user.slice/user-1001.slice/user@1001.service";
  const std::vector<std::string> cases = {
      delegated + "/job_999\n",
      delegated + "/slurm/uid_1001/job_999/step_0\n",
      delegated + "/system.slice/slurmstepd.scope/job_999/step_0\n",
      delegated + "/app.slice/slurmstepd.scope/job_999\n",
      "1:name=systemd:/user.slice/user-1001.slice/user@1001.service/slurm/uid_1001/job_999\n",
      "0::/machine.slice/libpod-1.scope/system.slice/slurmstepd.scope/job_999\n",
      "0::/../system.slice/slurmstepd.scope/job_999\n",
      "0::/../../slurm/uid_1001/job_999\n",
      // In one component.
      delegated + "/x:0::\n",
      delegated + "/0::/system.slice/slurmstepd.scope/job_999\n",
  };
  for (const std::string& text : cases) EXPECT_EQ(job_in(text), "none") << text;
}

TEST(SlurmCgroup, WhatIsNotExactlySuchAPathIsNone) {
  const std::vector<std::string> cases = {
      "",
      "\n",
      "0::\n",
      "0::/\n",
      "0:\n",
      "nonsense\n",
      "0::/system.slice/slurmstepd.scope\n",
      "0::/system.slice/slurmstepd.scope/system\n",
      "0::/system.slice/slurmstepd.scope/step_0/job_1\n",
      "0::/system.slice/slurmstepd.scope/job_\n",
      "0::/system.slice/slurmstepd.scope/job_0\n",
      "0::/system.slice/slurmstepd.scope/job_012\n",
      "0::/system.slice/slurmstepd.scope/job_12a/step_0\n",
      "0::/system.slice/slurmstepd.scope/job_-1\n",
      "0::/system.slice/slurmstepd.scope/job_12345678901\n",
      "0::/system.slice/slurmstepd.scope/job_12 (deleted)\n",
      "0::/system.slice/slurmstepd.scope//job_12\n",
      "0::system.slice/slurmstepd.scope/job_12\n",
      "0::/system.slice/_slurmstepd.scope/job_12\n",
      "0::/system.slice/n1slurmstepd.scope/job_12\n",
      "0::/system.slice/slurmstepd.scope.x/job_12\n",
      "0::/x.slice/slurmstepd.scope/job_12\n",
      "4:memory:/slurm/job_12/step_0\n",
      "4:memory:/slurm/uid_x/job_12\n",
      "4:memory:/slurm/uid_1001/x/job_12\n",
      "4:memory:/slurmx/uid_1001/job_12\n",
      "4:memory:/slurm_/uid_1001/job_12\n",
      // Each version's groups count in its own hierarchies only.
      "0::/slurm/uid_1001/job_12\n",
      "4:memory:/system.slice/slurmstepd.scope/job_12\n",
      // The rest of the number may be missing.
      "0::/system.slice/slurmstepd.scope/job_12",
      "4:memory:/slurm/uid_1001/job_12",
  };
  for (const std::string& text : cases) EXPECT_EQ(job_in(text), "none") << text;
}

}  // namespace
}  // namespace vpfs::fuse
