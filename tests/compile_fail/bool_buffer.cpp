// expect: nothing
#include "dsl/tile.h"
using namespace tile;
// A vector<bool> has no elements to point at: copied through bytes.
void copies(std::shared_ptr<Device> device) {
  auto b = Buffer<bool>::from(device, std::vector<bool>{true, false}).value_or_throw();
  std::vector<bool> back = b.to_host().value_or_throw();
}
