// int8_lanes.hpp - the instruction of kernels/int8_ptx.clh, whose place this file takes, beside lanes.hpp: mma.sync on 8-bit
// integers by the definition of m16n8k32's fragments, by all 32 items of a run together.
inline int digit_of(uint word, int place) { return static_cast<signed char>(word >> 8 * place & 255); }

inline void mma_digits(int *c, uint4 a, uint b0, uint b1)
{
    const int run = local_id / 32, lane = local_id % 32;
    const uint mine[6] = {a.s0, a.s2, a.s1, a.s3, b0, b1};
    std::memcpy(shown[run][lane], mine, sizeof mine);
    run_barriers[run]->arrive_and_wait();
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 32; k++)
            c[e] += digit_of(shown[run][row % 8 * 4 + k % 16 / 4][row / 8 + k / 16 * 2], k % 4) *
                    digit_of(shown[run][column * 4 + k % 16 / 4][4 + k / 16], k % 4);
    }
    run_barriers[run]->arrive_and_wait();
}

#define MMA_DIGITS(c, a, b0, b1) mma_digits(c, a, b0, b1)
