// int8_lanes.hpp - the instruction of kernels/int8_ptx.clh, whose place this file takes, after lanes.hpp: mma.sync on 8-bit
// integers by the definition of m16n8k32's fragments, for all 32 items of a run together.
inline int digit_of(uint word, int place) { return static_cast<signed char>(word >> 8 * place & 255); }

inline void mma_digits_of(const Shown *lanes)
{
    int a[16][32], b[32][8];
    for (int lane = 0; lane < 32; lane++)
        for (int word = 0; word < 6; word++)
            for (int place = 0; place < 4; place++) {
                const int digit = digit_of(lanes[lane].words[word], place), k = lane % 4 * 4 + place;
                if (word < 4)
                    a[lane / 4 + word % 2 * 8][k + word / 2 * 16] = digit;
                else
                    b[k + word % 2 * 16][lane / 4] = digit;
            }
    for (int lane = 0; lane < 32; lane++)
        for (int e = 0; e < 4; e++)
            for (int k = 0; k < 32; k++)
                static_cast<int *>(lanes[lane].sums)[e] += a[lane / 4 + e / 2 * 8][k] * b[k][lane % 4 * 2 + e % 2];
}

inline void mma_digits(int *c, uint4 a, uint b0, uint b1)
{
    const int run = local_id / 32;
    shown[run][local_id % 32] = {c, false, {a.s0, a.s2, a.s1, a.s3, b0, b1}};
    runs_meet[run].arrive_and_wait([&] { mma_digits_of(shown[run]); });
}

#define MMA_DIGITS(c, a, b0, b1) mma_digits(c, a, b0, b1)
