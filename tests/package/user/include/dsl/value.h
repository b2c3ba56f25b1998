// The application's own: not what a header of tile's may get.
#pragma once
#define APP_VALUE_H 1
