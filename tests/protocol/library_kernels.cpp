// library_kernels.cpp - kernels of the library, traced for dense aligned tensors.
#include <stdexcept>

#include "kernels/catalog.h"
#include "tests/protocol/kernels.h"

namespace tile::ir::protocol {
namespace {

struct Choice {
  const char *row, *dtype;
  std::vector<std::string> fields;
  std::vector<int64_t> sizes;  ///< of every dim of every view
  std::array<int64_t, 3> grid;
};

std::vector<Choice> choices() {
  return {
      {"gemm", "f16", {"BM=128", "BN=256", "BK=64", "warps=8", "stages=4"}, {64, 128, 192, 256, 320, 576}, {3, 1, 1}},
      {"gemm",
       "bf16",
       {"BM=64", "BN=128", "BK=64", "warps=4", "stages=3", "trans_b=true", "trans_a=true"},
       {64, 256, 320},
       {3, 2, 1}},
      {"attention_forward",
       "f16",
       {"BM=128", "BN=128", "D=128", "DV=128", "warps=8", "stages=2"},
       {64, 128, 256, 384, 640},
       {3, 1, 1}},
      {"attention_forward",
       "bf16",
       {"BM=128", "BN=64", "D=64", "DV=64", "warps=8", "causal=true"},
       {64, 128, 320, 448},
       {4, 1, 1}},
      {"attention_forward",
       "f16",
       {"BM=64", "BN=128", "D=64", "DV=64", "warps=4", "causal=true"},
       {128, 384, 640, 1152},
       {3, 2, 1}},
      {"attention_forward",
       "f8e4m3",
       {"BM=128", "BN=128", "D=128", "DV=128", "warps=8", "stages=2", "split=false"},
       {128, 256, 384, 640},
       {3, 1, 1}},
      {"attention_forward",
       "f8e4m3",
       {"BM=64", "BN=64", "D=64", "DV=64", "warps=4", "causal=true", "split=false"},
       {64, 128, 320},
       {3, 2, 1}},
      {"block_sparse_matmul", "f16", {}, {64, 256, 448}, {3, 2, 1}},
      {"block_sparse_dense", "f16", {}, {64, 256, 448, 512}, {7, 2, 1}},
  };
}

}  // namespace

std::vector<TestKernel> libraryKernels() {
  std::vector<TestKernel> kernels;
  for (const Choice& choice : choices()) {
    auto row = tile::kernels::find_kernel(choice.row);
    if (!row) throw std::runtime_error(row.error().to_string());
    const AnyKernel* kernel = (*row)->kernel(choice.dtype);
    auto config = kernel->parse_config(choice.fields, kernel->default_config());
    if (!config) throw std::runtime_error(config.error().to_string());
    Traced traced = kernel->trace(*config, tile::kernels::dense_specialization(*kernel));
    if (!traced) throw std::runtime_error(traced.error().to_string());
    TestKernel made{std::string(choice.row) + " " + kernel->describe_config(*config), traced.text(), {}};
    for (int64_t size : choice.sizes) {
      Inputs inputs;
      inputs.otherDims = size;
      inputs.grid = choice.grid;
      inputs.memory = [](int64_t address, llvm::ArrayRef<int64_t> indices) {
        int64_t hash = address % 1009;
        for (int64_t index : indices) hash = hash * 31 + index * 7 + 3;
        return (hash % 5 + 5) % 5;
      };
      made.inputs.push_back(std::move(inputs));
    }
    kernels.push_back(std::move(made));
  }
  return kernels;
}

}  // namespace tile::ir::protocol
