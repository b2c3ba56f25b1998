// golden.h - a checked-in table of what is expected of each build: one line "key: value" for each, sorted. A test
// compares its line; with TILE_UPDATE_GOLDEN=1 it collects lines instead, and write() replaces the file.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace tile::testing {

class GoldenTable {
 public:
  /// Reads the file; a missing one is empty. Lines of `#` are its header: kept, and shown in messages.
  explicit GoldenTable(std::string path);

  bool updating() const { return updating_; }
  /// What the header says of `name` ("# name value"); empty when it says nothing.
  std::string header(const std::string& name) const;
  void setHeader(const std::string& name, const std::string& value);
  /// Empty when the table agrees; else the difference and how to take the new value over.
  std::string compare(const std::string& key, const std::string& value);
  /// Keys of the table that nobody asked for.
  std::vector<std::string> unused() const;
  /// When updating: writes what compare() was given.
  void write() const;

 private:
  std::string path_;
  bool updating_;
  std::vector<std::string> comments_;
  std::map<std::string, std::string> headers_, expected_, found_;
};

}  // namespace tile::testing
