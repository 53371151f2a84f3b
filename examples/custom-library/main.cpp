// Counts bytes with the project's own library, compares the counts with those of the CPU, and prints OK.

#include <cstdio>
#include <vector>

#include "counting.h"

int main() {
    std::vector<unsigned char> bytes(1 << 22);
    std::vector<unsigned> expected(256), counts(256);
    for (std::size_t index = 0; index < bytes.size(); ++index) {
        bytes[index] = static_cast<unsigned char>(index * index / 7);
        ++expected[bytes[index]];
    }
    if (const int error = count_bytes(bytes.data(), bytes.size(), counts.data())) {
        std::fprintf(stderr, "CUDA error %d\n", error);
        return 1;
    }
    if (counts != expected) {
        std::fprintf(stderr, "the counts differ from those of the CPU\n");
        return 1;
    }
    std::printf("OK: %zu bytes\n", bytes.size());
}
