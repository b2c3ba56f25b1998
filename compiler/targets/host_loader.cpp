// host_loader.cpp - one ORC session for the process; each object is a library of its own in it, removed with its
// handle.
#include "compiler/targets/host_loader.h"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "compiler/targets/debugger_names.h"
#include "compiler/targets/host.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Support/MemoryBuffer.h"

#include "runtime/float_types.h"

namespace tile::ir {

namespace {

#if defined(__x86_64__)
// Narrowing on processors without an instruction for it. A 16-bit float is returned in the low bits of xmm0.
__m128i bits16(uint16_t bits) { return _mm_cvtsi32_si128(bits); }
__m128i floatToHalf(float x) { return bits16(half(x).bits); }
__m128i doubleToHalf(double x) { return bits16(half(x).bits); }
__m128i floatToBfloat(float x) { return bits16(bfloat16(x).bits); }
__m128i doubleToBfloat(double x) { return bits16(bfloat16(x).bits); }
#endif

/// What LLVM's code generator may call: the intrinsics without an instruction. Nothing else of the process is visible.
struct Helper {
  const char* name;
  void* address;
};
#define TILE_LIBM1(name)                                                            \
  {#name, reinterpret_cast<void*>(static_cast<double (*)(double)>(::name))}, {      \
#name "f", reinterpret_cast < void*>(static_cast <float (*)(float)>(::name##f)) \
  }
#define TILE_LIBM2(name)                                                                   \
  {#name, reinterpret_cast<void*>(static_cast<double (*)(double, double)>(::name))}, {     \
#name "f", reinterpret_cast < void*>(static_cast <float (*)(float, float)>(::name##f)) \
  }
const Helper kHelpers[] = {
    TILE_LIBM1(exp),
    TILE_LIBM1(exp2),
    TILE_LIBM1(exp10),
    TILE_LIBM1(expm1),
    TILE_LIBM1(log),
    TILE_LIBM1(log2),
    TILE_LIBM1(log10),
    TILE_LIBM1(log1p),
    TILE_LIBM1(sin),
    TILE_LIBM1(cos),
    TILE_LIBM1(tan),
    TILE_LIBM1(asin),
    TILE_LIBM1(acos),
    TILE_LIBM1(atan),
    TILE_LIBM1(sinh),
    TILE_LIBM1(cosh),
    TILE_LIBM1(tanh),
    TILE_LIBM1(asinh),
    TILE_LIBM1(acosh),
    TILE_LIBM1(atanh),
    TILE_LIBM1(erf),
    TILE_LIBM1(erfc),
    TILE_LIBM1(sqrt),
    TILE_LIBM1(cbrt),
    TILE_LIBM1(floor),
    TILE_LIBM1(ceil),
    TILE_LIBM1(trunc),
    TILE_LIBM1(round),
    TILE_LIBM1(rint),
    TILE_LIBM1(nearbyint),
    TILE_LIBM1(roundeven),
    TILE_LIBM2(pow),
    TILE_LIBM2(fmod),
    TILE_LIBM2(atan2),
    TILE_LIBM2(fmax),
    TILE_LIBM2(fmin),
    {"fma", reinterpret_cast<void*>(static_cast<double (*)(double, double, double)>(::fma))},
    {"fmaf", reinterpret_cast<void*>(static_cast<float (*)(float, float, float)>(::fmaf))},
    {"ldexp", reinterpret_cast<void*>(static_cast<double (*)(double, int)>(::ldexp))},
    {"ldexpf", reinterpret_cast<void*>(static_cast<float (*)(float, int)>(::ldexpf))},
#if defined(__x86_64__)
    {"__truncsfhf2", reinterpret_cast<void*>(floatToHalf)},
    {"__truncdfhf2", reinterpret_cast<void*>(doubleToHalf)},
    {"__truncsfbf2", reinterpret_cast<void*>(floatToBfloat)},
    {"__truncdfbf2", reinterpret_cast<void*>(doubleToBfloat)},
#endif
    {"sincos", reinterpret_cast<void*>(::sincos)},
    {"sincosf", reinterpret_cast<void*>(::sincosf)},
    {"memset", reinterpret_cast<void*>(::memset)},
    {"memcpy", reinterpret_cast<void*>(::memcpy)},
    {"memmove", reinterpret_cast<void*>(::memmove)},
    {"bcmp", reinterpret_cast<void*>(::memcmp)},
    {"memcmp", reinterpret_cast<void*>(::memcmp)},
};
#undef TILE_LIBM1
#undef TILE_LIBM2

class Session {
 public:
  static Result<Session*> get() {
    static Result<Session*> session = create();
    return session;
  }

  Result<HostCode> load(const std::string& object, const std::string& entry) {
    auto failure = [&](const char* what, llvm::Error error) {
      return Error{ErrorKind::internal,
                   std::string(what) + " host code of `" + entry + "`: " + llvm::toString(std::move(error)),
                   {}};
    };
    auto library = session_->createJITDylib("kernel" + std::to_string(next_++));
    if (!library) return failure("cannot make room for", library.takeError());
    // From here on the handle takes the library away again, whatever happens.
    struct Loaded {
      Session* session;
      llvm::orc::JITDylib* library;
      jit_code_entry* known = nullptr;
      ~Loaded() {
        session->names_.forget(known);
        llvm::consumeError(session->session_->removeJITDylib(*library));
      }
    };
    const auto loaded = std::shared_ptr<Loaded>(new Loaded{this, &*library});
    library->addToLinkOrder(*helpers_);
    if (auto error = layer_->add(*library, llvm::MemoryBuffer::getMemBufferCopy(object, entry)))
      return failure("cannot read", std::move(error));
    std::optional<llvm::Expected<llvm::orc::ExecutorSymbolDef>> symbol;
    loaded->known =
        names_.registered([&] { symbol.emplace(session_->lookup({&*library}, session_->intern(entry))); });
    if (!*symbol) return failure("cannot link", symbol->takeError());
    return HostCode{(*symbol)->getAddress().toPtr<HostEntry>(), loaded};
  }

 private:
  static Result<Session*> create() {
    requestMatrixUnit();  // code from the cache may use it
    auto process = llvm::orc::SelfExecutorProcessControl::Create();
    if (!process)
      return Error{
          ErrorKind::device, "cannot load host code in this process: " + llvm::toString(process.takeError()), {}};
    // Never destroyed: kernels may outlive any order of static destruction.
    auto* s = new Session;
    s->session_ = std::make_unique<llvm::orc::ExecutionSession>(std::move(*process));
    s->session_->setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
    s->layer_ = std::make_unique<llvm::orc::ObjectLinkingLayer>(*s->session_);
    s->names_.watch(*s->session_, *s->layer_);
    s->helpers_ = &s->session_->createBareJITDylib("helpers");
    llvm::orc::SymbolMap symbols;
    for (const Helper& h : kHelpers)
      symbols[s->session_->intern(h.name)] = {llvm::orc::ExecutorAddr::fromPtr(h.address),
                                              llvm::JITSymbolFlags::Exported};
    if (auto error = s->helpers_->define(llvm::orc::absoluteSymbols(std::move(symbols))))
      return Error{ErrorKind::internal, "cannot prepare host code loading: " + llvm::toString(std::move(error)), {}};
    return s;
  }

  std::unique_ptr<llvm::orc::ExecutionSession> session_;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> layer_;
  DebuggerNames names_;
  llvm::orc::JITDylib* helpers_ = nullptr;
  std::atomic<uint64_t> next_{0};
};

}  // namespace

Result<HostCode> loadHostObject(const std::string& object, const std::string& entry) {
  auto session = Session::get();
  if (!session) return session.error();
  return (*session)->load(object, entry);
}

}  // namespace tile::ir
