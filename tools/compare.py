#!/usr/bin/env python3
"""compare.py - tile's kernels beside what a user would pick instead, on one GPU, in one run.

Usage: tools/compare.py [--bench build/bin/bench] [--device cuda:0] [--rounds 3] [--sustained] [--set BM=64 ...]
       [--only REGEX] [--problem "gemm f16 M=1536 N=1536 K=1536" ...] [--out DIR]

Every round times one of our kernels (a `bench --follow` process) and its peers (torch: cuBLAS, cuDNN, FlashAttention-2; Triton; device
copy) one right after the other, in shuffled order, because an H200 under load settles at a lower clock than a cool one.
Both sides use the same method: idle pause, warm-up, a window of about 10 ms between CUDA events, the median of rounds; beside
the time stand cycles of the multiprocessors per launch, which do not follow the clock.
Prints a table of ratios (above 1: ours is faster); writes compare.json and, with matplotlib, compare.png to DIR. Sparse
problems compared at several densities get a table of their own, and density.png: --only block_sparse_dense.
Needs torch with CUDA; Triton is optional. Peers that fail or are missing are listed with the reason.
"""
import argparse
import ctypes
import functools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None  # main() says so, behind --help

TORCH_TYPES = torch and {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "tf32": torch.float32,
                         "tf32x3": torch.float32, "f8e4m3": torch.float8_e4m3fn, "f64": torch.float64, "i8": torch.int8}


class CycleCounter:
    """Cycles of the multiprocessors between two points of torch's stream: the method of runtime/cycles.cpp, with its kernel."""

    PTX = b""".version 7.0
.target sm_80
.address_size 64
.visible .entry read_clocks(.param .u64 clocks)
{
  .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %d<5>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra done;
  mov.u32 %r1, %smid;
  ld.param.u64 %d0, [clocks];
  cvta.to.global.u64 %d1, %d0;
  mul.wide.u32 %d2, %r1, 8;
  add.u64 %d3, %d1, %d2;
  mov.u64 %d4, %clock64;
  st.global.u64 [%d3], %d4;
done:
  ret;
}
"""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.clocks = torch.zeros(2, 512, dtype=torch.int64, device="cuda")  # also makes torch's context current
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), self.PTX))
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"read_clocks"))
        self.programs = torch.cuda.get_device_properties(self.clocks.device).multi_processor_count
        empty = []
        for _ in range(5):
            self.read(0)
            self.read(1)
            empty.append(self.spent())
        self.own = min(empty)

    def check(self, result):
        if result != 0:
            raise RuntimeError(f"CUDA error {result}")

    def read(self, which):
        address = ctypes.c_uint64(self.clocks[which].data_ptr())
        params = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.cuda.cuLaunchKernel(self.kernel, self.programs, 1, 1, 1024, 1, 1, 0, stream, params, None))

    def spent(self):
        begin, end = self.clocks.tolist()
        spent = sorted(e - b for b, e in zip(begin, end) if b > 0 and e > b)
        return spent[len(spent) // 2] if 2 * len(spent) >= self.programs else 0

    def cycles(self):
        return max(1, self.spent() - self.own)


@functools.cache
def cycle_counter():
    return CycleCounter()


def time_call(fn, sustained=False):
    """Milliseconds and cycles per call: the method of tools/bench/timing.cpp."""
    counter = cycle_counter()
    fn()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    fn()
    end.record()
    end.synchronize()
    once = max(begin.elapsed_time(end), 1e-3)
    launches = max(1, min(10000, int((60 if sustained else 10) / once)))
    if not sustained:
        time.sleep(0.2)
    for _ in range(3 + (int(40 / once) if sustained else 0)):
        fn()
    counter.read(0)
    begin.record()
    for _ in range(launches):
        fn()
    end.record()
    counter.read(1)
    end.synchronize()
    return begin.elapsed_time(end) / launches, counter.cycles() / launches


# ---- peers: name -> function(sizes, dtype) that returns a callable doing one run


def scaled_matmul(s):
    """cuBLASLt with fp8 operands; fast accumulation, as users run it."""
    a = torch.randn(s["M"], s["K"], device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(s["N"], s["K"], device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)


def integer_matmul(s):
    """cuBLASLt's int8 product into int32; it wants B as [N, K]."""
    a = torch.randint(-128, 128, (s["M"], s["K"]), dtype=torch.int8, device="cuda")
    b = torch.randint(-128, 128, (s["N"], s["K"]), dtype=torch.int8, device="cuda").t()
    return lambda: torch._int_mm(a, b)


def matmul(s, dtype):
    if dtype == "f8e4m3":
        return scaled_matmul(s)
    if dtype == "i8":
        return integer_matmul(s)
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    t = TORCH_TYPES[dtype]
    a = torch.randn(s["M"], s["K"], dtype=t, device="cuda")
    b = torch.randn(s["N"], s["K"], dtype=t, device="cuda").t() if s.get("tb") else torch.randn(s["K"], s["N"], dtype=t, device="cuda")
    out = torch.empty(s["M"], s["N"], dtype=t, device="cuda")
    return lambda: torch.matmul(a, b, out=out)


def sdpa_options(s):
    return {"dropout_p": s.get("dropout", 0) / 100, "is_causal": bool(s.get("causal", 0))}


def sdpa(backend):
    def make(s, dtype):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        shape = (s.get("B", 1), s.get("Hq", 1), s["Sq"], s["D"])
        q, k, v = (torch.randn(shape, dtype=TORCH_TYPES[dtype], device="cuda") for _ in range(3))

        def run():
            with sdpa_kernel(getattr(SDPBackend, backend)):
                F.scaled_dot_product_attention(q, k, v, **sdpa_options(s))

        return run

    return make


def sdpa_backward(backend):
    def make(s, dtype):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        shape = (s.get("B", 1), s.get("Hq", 1), s["Sq"], s["D"])
        q, k, v, d = (torch.randn(shape, dtype=TORCH_TYPES[dtype], device="cuda", requires_grad=True) for _ in range(4))
        with sdpa_kernel(getattr(SDPBackend, backend)):
            o = F.scaled_dot_product_attention(q, k, v, **sdpa_options(s))
        return lambda: torch.autograd.grad(o, (q, k, v), d, retain_graph=True)

    return make


def rowwise(op):
    def make(s, dtype):
        x = torch.randn(s["M"], s["N"], dtype=TORCH_TYPES[dtype], device="cuda")
        w = torch.randn(s["N"], dtype=TORCH_TYPES[dtype], device="cuda")
        return lambda: op(x, w)

    return make


def copy_matrix(s, dtype):
    """Reads and writes as many bytes as a row kernel of this size."""
    x = torch.empty(s["M"], s["N"], dtype=TORCH_TYPES[dtype], device="cuda").normal_()
    y = torch.empty_like(x)
    return lambda: y.copy_(x)


def copy_three(s, dtype):
    """A copy that moves the bytes of a vector add: half of them read, half written."""
    x = torch.empty(3 * s["n"] // 2, dtype=TORCH_TYPES[dtype], device="cuda").normal_()
    y = torch.empty_like(x)
    return lambda: y.copy_(x)


def triton_add(s, dtype):
    global _add_kernel, tl  # triton.jit looks names up in globals
    import triton
    import triton.language as tl

    if "_add_kernel" not in globals():

        @triton.jit
        def _add_kernel(x, y, o, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(o + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

    n = s["n"]
    x, y = (torch.randn(n, dtype=TORCH_TYPES[dtype], device="cuda") for _ in range(2))
    o = torch.empty_like(x)
    return lambda: _add_kernel[(triton.cdiv(n, 1024),)](x, y, o, n, BLOCK=1024)


def bsr(s, dtype):
    block = s.get("bm", 64)
    a = torch.randn(s["M"], s["K"], dtype=TORCH_TYPES[dtype], device="cuda")
    mask = torch.rand(s["M"] // block, s["K"] // block, device="cuda") < s.get("density", 50) / 100
    a = (a * mask.repeat_interleave(block, 0).repeat_interleave(block, 1)).to_sparse_bsr((block, block))
    b = torch.randn(s["K"], s["N"], dtype=TORCH_TYPES[dtype], device="cuda")
    return lambda: a @ b


def flex_inputs(s, dtype, gradients=False):
    """Four tensors, the mask of blocks of our catalog's problem, and compiled flex_attention."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    shape, block = (s.get("B", 1), s.get("Hq", 1), s["Sq"], s["D"]), s.get("block", 128)
    tensors = [torch.randn(shape, dtype=TORCH_TYPES[dtype], device="cuda", requires_grad=gradients) for _ in range(4)]
    side = -(-s["Sq"] // block)
    present = torch.rand(side, side, device="cuda") < s.get("density", 100) / 100
    causal, left = bool(s.get("causal", 0)), s.get("left", -1)

    def visible(b, h, i, j):
        seen = present[i // block, j // block]
        if causal:
            seen = seen & (j <= i)
        if left >= 0:
            seen = seen & (i - j <= left)
        return seen

    mask = create_block_mask(visible, None, None, s["Sq"], s["Sq"], device="cuda", BLOCK_SIZE=block)
    return tensors, mask, torch.compile(flex_attention)


def flex(s, dtype):
    (q, k, v, _), mask, run = flex_inputs(s, dtype)
    return lambda: run(q, k, v, block_mask=mask)


def flex_backward(s, dtype):
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False  # the graph is run backwards more than once
    (q, k, v, d), mask, run = flex_inputs(s, dtype, gradients=True)
    o = run(q, k, v, block_mask=mask)
    return lambda: torch.autograd.grad(o, (q, k, v), d, retain_graph=True)


def fla_chunk(s, dtype):
    from fla.ops.gla import chunk_gla

    def tensor(channels):
        return torch.randn(s.get("B", 1), s["L"], s.get("H", 1), channels, dtype=TORCH_TYPES[dtype], device="cuda")

    q, k, v = tensor(s["K"]), tensor(s["K"]), tensor(s.get("V", s["K"]))
    g = F.logsigmoid(tensor(s["K"]).float()) / 16
    return lambda: chunk_gla(q, k, v, g)


def fla_backward(s, dtype):
    from fla.ops.gla import chunk_gla

    def tensor(channels):
        return torch.randn(s.get("B", 1), s["L"], s.get("H", 1), channels, dtype=TORCH_TYPES[dtype], device="cuda")

    q, k, v = (tensor(n).requires_grad_() for n in (s["K"], s["K"], s.get("V", s["K"])))
    g = (F.logsigmoid(tensor(s["K"]).float()) / 16).requires_grad_()
    o, _ = chunk_gla(q, k, v, g)
    d_o = torch.randn_like(o)
    return lambda: torch.autograd.grad(o, (q, k, v, g), d_o, retain_graph=True)


def convolve(s, dtype):
    """cuDNN, channels last, its algorithm found by trying."""
    torch.backends.cudnn.benchmark = True
    taps = s.get("R", 3)
    x = torch.randn(s["N"], s["C"], s["H"], s["W"], dtype=TORCH_TYPES[dtype], device="cuda")
    w = torch.randn(s["K"], s["C"], taps, taps, dtype=TORCH_TYPES[dtype], device="cuda")
    x, w = (t.to(memory_format=torch.channels_last) for t in (x, w))
    return lambda: F.conv2d(x, w, stride=s.get("stride", 1), padding=s.get("pad", 0), dilation=s.get("dilation", 1))


def gated_matmul(s, dtype):
    a, g, u = (torch.randn(shape, dtype=TORCH_TYPES[dtype], device="cuda")
               for shape in ((s["M"], s["K"]), (s["K"], s["N"]), (s["K"], s["N"])))
    return lambda: F.silu(a @ g) * (a @ u)


def logits_loss(s, dtype, gradients=False):
    x = torch.randn(s["M"], s["V"], dtype=TORCH_TYPES[dtype], device="cuda", requires_grad=gradients)
    labels = torch.randint(0, s["V"], (s["M"],), device="cuda")
    if not gradients:
        return lambda: F.cross_entropy(x, labels, reduction="none")
    loss = F.cross_entropy(x, labels, reduction="none")
    upstream = torch.randn_like(loss)
    return lambda: torch.autograd.grad(loss, x, upstream, retain_graph=True)


PEERS = {
    "vector_add": {"device copy": copy_three, "Triton": triton_add},
    "softmax": {"device copy": copy_matrix, "torch.softmax": rowwise(lambda x, w: torch.softmax(x, -1))},
    "layer_norm": {"device copy": copy_matrix, "torch layer_norm": rowwise(lambda x, w: F.layer_norm(x, x.shape[-1:], w, w))},
    "rms_norm": {"device copy": copy_matrix, "torch rms_norm": rowwise(lambda x, w: F.rms_norm(x, x.shape[-1:], w))},
    "cross_entropy": {"torch cross_entropy": logits_loss},
    "cross_entropy_backward": {"torch cross_entropy backward": functools.partial(logits_loss, gradients=True)},
    "gemm": {"cuBLAS": matmul},
    "gated_gemm": {"cuBLAS twice, torch silu": gated_matmul},
    "convolution": {"cuDNN": convolve},
    "attention_forward": {"FlashAttention-2": sdpa("FLASH_ATTENTION"), "cuDNN": sdpa("CUDNN_ATTENTION")},
    "block_sparse_attention": {"flex_attention": flex},
    "block_sparse_attention_backward": {"flex_attention backward": flex_backward},
    "block_sparse_attention_backward_deterministic": {"flex_attention backward": flex_backward},
    "attention_backward": {"FlashAttention-2": sdpa_backward("FLASH_ATTENTION"), "cuDNN": sdpa_backward("CUDNN_ATTENTION")},
    "block_sparse_dense": {"torch BSR": bsr},
    "block_sparse_matmul": {"cuBLAS dense": matmul, "torch BSR (A only)": bsr},
    "gla_chunk_forward": {"fla chunk_gla": fla_chunk},
    "gla_forward": {"fla chunk_gla": fla_chunk},
    "gla_backward": {"fla chunk_gla backward": fla_backward},
}


def our_problems(bench):
    """(kernel, dtype, sizes) of every GPU bench problem that has a peer."""
    kernel = None
    for line in subprocess.run([bench, "--list"], check=True, capture_output=True, text=True).stdout.splitlines():
        if not line.startswith(" "):
            kernel = line.split(":")[0]
        elif "(host)" not in line and kernel in PEERS:
            problem = parse_problem(f"{kernel} {line}")
            if problem[1] in TORCH_TYPES:
                yield problem


def parse_problem(text):
    """(kernel, dtype, sizes) of "kernel dtype NAME=SIZE ..."."""
    try:
        kernel, dtype, *sizes = text.split()
        return kernel, dtype, {k: int(v) for k, v in (pair.split("=") for pair in sizes)}
    except ValueError:
        sys.exit(f'expected "kernel dtype NAME=SIZE ...", found "{text}"')


def chosen_problems(args):
    """Those named by --problem, else the catalog's that --only matches."""
    for text in args.problem:
        kernel, dtype, sizes = parse_problem(text)
        if kernel not in PEERS or dtype not in TORCH_TYPES:
            sys.exit(f"no peer computes {kernel} {dtype}; there are some for {', '.join(PEERS)} of {', '.join(TORCH_TYPES)}")
        yield kernel, dtype, sizes
    for problem in our_problems(args.bench) if not args.problem else []:
        if re.search(args.only, label_of(*problem)):
            yield problem


def label_of(kernel, dtype, sizes):
    return f"{kernel} {dtype} " + " ".join(f"{k}={v}" for k, v in sizes.items())


class Ours:
    """A `bench --follow` process: one problem, prepared and checked once, timed on request."""

    def __init__(self, args, kernel, dtype, sizes):
        command = [args.bench, "--device", args.device, "--problem", label_of(kernel, dtype, sizes), "--rounds", "1", "--follow"]
        command += [] if args.no_check else ["--check"]
        command += ["--set", *args.set] if args.set else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = ""
        for line in self.process.stdout:
            if line.startswith("ready "):
                self.facts = json.loads(line[6:])
                return
            said = line.strip() or said
        raise RuntimeError(said[:300] or "bench failed")

    def time_call(self, sustained=False):
        self.process.stdin.write("sustained\n" if sustained else "burst\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.startswith("ms "):
            raise RuntimeError(line.strip()[:300] or "bench ended")
        _, ms, _, cycles = line.split()
        return float(ms), float(cycles)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare_one(args, kernel, dtype, sizes):
    contenders, errors, ours = {}, {}, None
    for name, make in {"tile": None, **PEERS[kernel]}.items():
        try:
            if name == "tile":
                ours = Ours(args, kernel, dtype, sizes)
                contenders[name] = ours.time_call
            else:
                run = make(sizes, dtype)
                contenders[name] = lambda sustained, run=run: time_call(run, sustained)
        except Exception as e:  # a peer that is not installed or refuses the shape must not end the comparison
            errors[name] = str(e).replace("\n", " ")[:160] or type(e).__name__
    row = {"kernel": kernel, "dtype": dtype, "sizes": sizes, "errors": errors}
    for mode in ["burst"] + (["sustained"] if args.sustained else []):
        times = {name: [] for name in contenders}
        for _ in range(args.rounds):
            order = [name for name in contenders if name not in errors]
            random.shuffle(order)
            for name in order:
                try:
                    times[name].append(contenders[name](mode == "sustained"))
                except Exception as e:
                    errors[name] = str(e).replace("\n", " ")[:160] or type(e).__name__
        timed = {name: t for name, t in times.items() if t and name not in errors}
        row[mode] = {name: statistics.median(ms for ms, _ in t) for name, t in timed.items()}
        row[mode + "_cycles"] = {name: statistics.median(cycles for _, cycles in t) for name, t in timed.items()}
    row["ms"] = row["burst"]
    if ours:
        ours.close()
    contenders.clear()
    torch.cuda.empty_cache()
    if ours and "tile" in row["ms"]:
        scale = ours.facts["ms"] / row["ms"]["tile"]
        row["tflops"], row["gbytes_per_s"] = ours.facts["tflops"] * scale, ours.facts["gbytes_per_s"] * scale
        row["config"] = ours.facts["config"]
        for mode, ratios in (("burst", "ratios"), ("sustained", "sustained_ratios")):
            if mode in row:
                row[ratios] = {name: ms / row[mode]["tile"] for name, ms in row[mode].items() if name != "tile"}
    return row


def print_row(row):
    label = label_of(row["kernel"], row["dtype"], row["sizes"])
    if "tile" not in row["ms"]:
        print(f"{label:<72} tile failed: {row['errors'].get('tile')}", flush=True)
        return
    text = f"{label:<72} {row['ms']['tile']:>9.4f} ms {row['tflops']:>8.1f} TFLOP/s {row['gbytes_per_s']:>7.0f} GB/s "
    cycles = row["burst_cycles"]
    text += f" {cycles['tile'] / 1e3:>8.1f} kcycles "
    text += "".join(f"  {name} x{ratio:.2f} ({row['ms'][name]:.4f} ms, {cycles[name] / 1e3:.1f} kcycles)"
                    for name, ratio in row["ratios"].items())
    if row.get("sustained_ratios"):
        text += "  sustained " + " ".join(f"x{ratio:.2f}" for ratio in row["sustained_ratios"].values())
    text += "".join(f"  [{name}: {why[:70]}]" for name, why in row["errors"].items())
    print(text, flush=True)


def plot(rows, path):
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("no plot: matplotlib is not installed")
        return
    bars = [(f"{r['kernel']} {r['dtype']} " + " ".join(f"{k}{v}" for k, v in r["sizes"].items()), name, ratio)
            for r in rows for name, ratio in r.get("ratios", {}).items()]
    if not bars:
        return
    figure, axes = plt.subplots(figsize=(11, 1.5 + 0.28 * len(bars)))
    axes.barh([f"{label}  vs {name}" for label, name, _ in bars], [ratio for *_, ratio in bars],
              color=["tab:green" if ratio >= 1 else "tab:orange" for *_, ratio in bars])
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("peer's time / tile's time (above 1: tile is faster)")
    axes.invert_yaxis()
    axes.tick_params(labelsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print("plot:", path)


def density_curves(rows):
    """{label: rows by falling density} of the problems that were compared at three densities or more."""
    curves = {}
    for row in rows:
        rest = " ".join(f"{k}={v}" for k, v in row["sizes"].items() if k != "density")
        if "density" in row["sizes"] and "tile" in row["ms"]:
            curves.setdefault(f"{row['kernel']} {row['dtype']} {rest}", []).append(row)
    return {label: sorted(of, key=lambda r: -r["sizes"]["density"]) for label, of in curves.items() if len(of) >= 3}


def report_densities(rows, path):
    """Time against the share of blocks that are present: a table, and a plot where matplotlib is installed."""
    curves = density_curves(rows)
    for label, of in curves.items():
        densest = of[0]
        print(f"\n{label}\n   density         ms   TFLOP/s  of {densest['sizes']['density']:>3} %'s rate   time / density")
        for r in of:
            share = r["sizes"]["density"] / densest["sizes"]["density"]
            cost = r["ms"]["tile"] / (share * densest["ms"]["tile"])
            peers = "".join(f"   {name} x{ratio:.2f}" for name, ratio in r["ratios"].items())
            print(f"{r['sizes']['density']:>8} % {r['ms']['tile']:>10.4f} {r['tflops']:>9.1f}"
                  f" {r['tflops'] / densest['tflops']:>17.2f} {cost:>16.2f}{peers}")
    if not curves:
        return
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return
    figure, axes = plt.subplots(1, len(curves), figsize=(6 * len(curves), 4.5), squeeze=False)
    for axis, (label, of) in zip(axes[0], curves.items()):
        densities = [r["sizes"]["density"] for r in of]
        for name in {name: None for r in of for name in r["ms"]}:
            points = [(r["sizes"]["density"], r["ms"][name]) for r in of if name in r["ms"]]
            axis.plot(*zip(*points), marker="o", linestyle="-" if name == "tile" else "--", label=name)
        axis.plot(densities, [of[0]["ms"]["tile"] * d / densities[0] for d in densities], color="grey", linewidth=1,
                  label="proportional to the density")
        axis.set(xscale="log", yscale="log", xlabel="blocks present, %", ylabel="ms", title=label)
        axis.set_xticks(densities, [str(d) for d in densities])
        axis.title.set_fontsize(8)
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print("plot:", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--bench", default=os.path.join(root, "build", "bin", "bench"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sustained", action="store_true", help="also time under lasting load")
    parser.add_argument("--no-check", action="store_true", help="do not compare our results with the float64 references")
    parser.add_argument("--set", nargs="*", default=[], metavar="FIELD=VALUE", help="fields of our kernels' configs")
    parser.add_argument("--only", default="", help="regular expression on \"kernel dtype NAME=SIZE ...\"")
    parser.add_argument("--problem", action="append", default=[], metavar='"KERNEL DTYPE NAME=SIZE ..."',
                        help="one problem of your own instead, in the catalog's terms (bench --list); may be repeated")
    parser.add_argument("--out", default=".")
    args = parser.parse_args()
    if torch is None:
        sys.exit("compare.py needs PyTorch with CUDA: pip install torch")
    if not torch.cuda.is_available():
        sys.exit("compare.py needs a GPU that PyTorch can use")
    torch.cuda.set_device(int(args.device.split(":")[1]) if ":" in args.device else 0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    rows = []
    for problem in chosen_problems(args):
        rows.append(compare_one(args, *problem))
        print_row(rows[-1])
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "compare.json"), "w") as f:
        json.dump({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, f, indent=1)
    plot(rows, os.path.join(args.out, "compare.png"))
    report_densities(rows, os.path.join(args.out, "density.png"))


if __name__ == "__main__":
    main()
