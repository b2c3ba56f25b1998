// tune.h - choosing a configuration by measuring.
#pragma once
#include "dsl/kernel.h"
