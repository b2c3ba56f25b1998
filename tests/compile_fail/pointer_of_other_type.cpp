// expect: conversion from 'Ptr<.*>' to non-scalar type 'Ptr<.*>' requested
#include "dsl/tile.h"
using namespace tile;
auto k = kernel("k", [](Ptr<half> p) { Ptr<const float> q = p; });
