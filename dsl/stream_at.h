// stream_at.h - where a launch goes and where it was written: a stream with the line that handed it over.
#pragma once
#include "types.h"
#include "../runtime/device.h"

namespace tile {

/// Taken by everything that launches in place of a Stream&, from which it makes itself, at the caller's line; what is
/// wrong with a launch then points there. Functions that launch for others take one too and hand it on:
///
///   Status norm_rows(StreamAt stream, TensorView<float, 2> x) { return norm.try_call(stream, NormConfig{}, x); }
class StreamAt {
 public:
  StreamAt(Stream& stream, SrcLoc loc = SrcLoc::current()) : stream_(&stream), loc_(loc) {}
  operator Stream&() const { return *stream_; }
  Device& device() const { return stream_->device(); }
  const SrcLoc& loc() const { return loc_; }
  /// `error` with a note that names this line, unless it has one already.
  Error refuse(Error error) const;

 private:
  Stream* stream_;
  SrcLoc loc_;
};

}  // namespace tile
