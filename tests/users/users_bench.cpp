// users_bench.cpp - times the kernels of this folder at full size: users_bench [NAME...]; `users_bench asm [NAME...]`
// says what the assembler makes of them (the cubins go to a FOLDER/ named among the names; no_sm_80=1 leaves a target
// out, seconds=1 says how long each took to build), `users_bench check [NAME...]` compares small problems with their
// references on the default device, `users_bench full FOLDER/ [NAME...]` runs of problems at full size, and with
// TILE_GPU_TARGET=sm_80 before or after it two targets (full_size.h). FIELD=VALUE changes a configuration where its
// case asks for it (Env::field), NAME:FIELD=VALUE,... that of one case alone, which may be named many times (a sweep).
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <ranges>

#include "compiler/targets/sass_in_flight.h"
#include "tests/users/full_size.h"
#include "tests/users/use.h"
#include "tools/bench/timing.h"

using namespace users;

namespace {

void assemble(const Case& c, Env env, const std::string& folder) {
  env.big = true;
  const Job job = c.prepare(env);
  for (const char* target : {"sm_80", "sm_90a"})
    for (const Step& step : job.steps) {
      if (env.field(std::string("no_") + target, 0)) continue;
      const auto start = std::chrono::steady_clock::now();
      const auto b = step.build(target);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (!b) {
        fmt::print("{:18} {:7} {}\n", c.name, target, b.error().to_string());
        continue;
      }
      if (std::string(target) == "sm_90a" && b->format == BinaryFormat::cubin)
        if (const auto code = tile::ir::readSass(b->bytes, b->entry, 90))
          for (const std::string& touched : tile::ir::touchedInFlight(*code))
            fmt::print("{:18} {:7} {}\n", c.name, target, touched);
      fmt::print("{:18} {:7} {:24} registers {:3} shared {:6} threads {:4}{} {}", c.name, target, step.name,
                 b->resources.registers, b->shared_bytes, b->threads, b->persistent ? " roles" : "",
                 code_problem(b->resources));
      fmt::print("{}\n", env.field("seconds", 0) ? fmt::format(" built in {:.2f} s", took.count()) : "");
      if (!folder.empty())
        std::ofstream(folder + step.name + "." + target + ".cubin", std::ios::binary) << b->bytes;
    }
}

bool check(const Case& c, const std::shared_ptr<Device>& device, Env env) {
  env.device = device;
  const auto start = std::chrono::steady_clock::now();
  const Job job = c.prepare(env);
  Stream& stream = device->default_stream();
  for (const Step& step : job.steps) step.run(stream).value_or_throw();
  stream.synchronize().value_or_throw();
  const std::string wrong = job.check();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} {:18} {:.1f} s {}\n", wrong.empty() ? "RIGHT" : "WRONG", c.name, took.count(), wrong);
  return wrong.empty();
}

void time(const Case& c, const std::shared_ptr<Device>& device, Env env) {
  env.device = device;
  env.big = true;
  const Job job = c.prepare(env);
  Stream& stream = device->default_stream();
  auto timed = [&](const std::string& name, const std::function<Status()>& launch) {
    const auto t = tile::bench::time_launches(device, stream, launch,
                                              {.rounds = 3, .window_ms = 10, .idle_ms = 20, .flush_l2 = true})
                       .value_or_throw();
    fmt::print("TIME {:18} {:24} {:9.5f} ms", c.name, name, t.ms);
    if (job.gflop > 0) fmt::print("  {:7.1f} TFLOP/s", job.gflop / t.ms);
    if (job.mbytes > 0) fmt::print("  {:7.1f} GB/s of all steps' bytes", job.mbytes / t.ms);
    fmt::print("\n");
  };
  if (!job.inTurn) {
    for (const Step& step : job.steps) timed(step.name, [&] { return step.run(stream); });
    return;
  }
  timed("all steps", [&] {
    Status status = Ok{};
    for (const Step& step : job.steps)
      if (status.ok()) status = step.run(stream);
    return status;
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const std::string mode = words.empty() ? "" : words[0];
  const bool only_assemble = mode == "asm", only_check = mode == "check", at_full_size = mode == "full";
  if (only_assemble || only_check || at_full_size) words.erase(words.begin());
  std::string folder;
  if (const auto it = std::find_if(words.begin(), words.end(), [](const auto& w) { return w.ends_with('/'); });
      it != words.end())
    folder = *it, words.erase(it);
  Env common;
  const auto changed = [](Env env, const std::string& fields) {
    for (const auto& field : std::views::split(fields, ',')) {
      const std::string word(field.begin(), field.end());
      if (auto at = word.find('='); at != std::string::npos)
        env.fields[word.substr(0, at)] = std::stoi(word.substr(at + 1));
    }
    return env;
  };
  for (const std::string& word : words)
    if (word.find(':') == std::string::npos) common = changed(common, word);
  std::erase_if(words, [](const std::string& word) {
    return word.find('=') != std::string::npos && word.find(':') == std::string::npos;
  });
  std::vector<std::pair<Case, Env>> asked;
  for (const Case& c : cases()) {
    if (words.empty()) asked.emplace_back(c, common);
    for (const std::string& word : words) {
      const auto colon = std::min(word.find(':'), word.size());
      if (word.substr(0, colon) != c.name) continue;
      asked.emplace_back(c, changed(common, word.substr(std::min(colon + 1, word.size()))));
      asked.back().first.name = word;
    }
  }
  int failures = 0;
  for (const auto& [c, env] : asked) {
    try {
      if (only_assemble)
        assemble(c, env, folder);
      else if (only_check)
        failures += !check(c, default_device().value_or_throw(), env);
      else if (at_full_size)
        compare_at_full_size(c, default_device().value_or_throw(), env, folder);
      else
        time(c, default_device().value_or_throw(), env);
    } catch (const std::exception& e) {
      fmt::print("{:18} {}\n", c.name, e.what());
      ++failures;
    }
    std::fflush(stdout);
  }
  return failures != 0;
}
