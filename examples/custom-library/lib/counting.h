#pragma once

#include <cstddef>

// Counts how often each byte occurs; `counts` has 256 entries. Returns CUDA's error number, 0 on success.
extern "C" int count_bytes(const unsigned char *bytes, std::size_t size, unsigned *counts);
