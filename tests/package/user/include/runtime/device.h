// The application's own: not what a header of tile's may get.
#pragma once
#define APP_DEVICE_H 1
