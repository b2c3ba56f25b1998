#include <tile/dsl/tile.h>

int main() { return tile::open_device("host").ok() ? 0 : 1; }
