# Runs the .mlir tests. Tools come from the build (tile-opt, tilec) and from LLVM's own folder (FileCheck, not, split-file).
import os
import shutil

import lit.formats

config.name = "tile"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.tile_build, "tests", "lit")

# Our tools first: a test must never pick up another build by accident.
config.environment["PATH"] = os.pathsep.join([os.path.join(config.tile_build, "bin"), config.llvm_tools, os.environ.get("PATH", "")])
config.environment["TILE_CACHE_DIR"] = os.path.join(config.test_exec_root, "cache")
for name in ("HOME", "CUDA_HOME", "CUDA_PATH", "TILE_PTXAS", "LD_LIBRARY_PATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# Features that a test can ask for with REQUIRES.
if shutil.which("ptxas") or os.path.exists("/usr/local/cuda/bin/ptxas"):
    config.available_features.add("ptxas")
if os.path.exists("/dev/nvidiactl"):
    config.available_features.add("cuda")

# %exit2 COMMAND passes when the command exits with 2; tilec's exit codes are a contract.
for code in range(5):
    config.substitutions.append((f"%exit{code}", f"sh -c '\"$@\"; test $? -eq {code}' sh"))

# %run executes a parameterless kernel on every device present; it prints which and fails if one fails.
config.substitutions.append(("%run", "tilec run --device all"))
