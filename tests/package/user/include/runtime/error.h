// The application's own: not what a header of tile's may get.
#pragma once
#define APP_ERROR_H 1
