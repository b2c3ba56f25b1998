// tile.h - the one header for writing and launching tile kernels. Pulls in no compiler header.
#pragma once
#include "dsl/control.h"
#include "dsl/debug.h"
#include "dsl/dot.h"
#include "dsl/kernel.h"
#include "dsl/math.h"
#include "dsl/memory.h"
#include "dsl/random.h"
#include "dsl/reduce.h"
#include "dsl/shape.h"
#include "dsl/tune.h"
#include "dsl/value.h"
#include "runtime/buffer.h"
