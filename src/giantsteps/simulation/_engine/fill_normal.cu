typedef unsigned long long word;

__device__ inline word split_mix(word &state) {
    state += 0x9E3779B97F4A7C15ULL;
    word z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

__device__ inline double open_unit(word &state) {
    return ((double)(split_mix(state) >> 11) + 0.5) * 1.1102230246251565e-16;
}

__device__ inline double unit(word w) {
    return __longlong_as_double((long long)((w >> 12) | 0x3FF0000000000000ULL)) - 1.0;
}

/* outer: 512, ratio: 512, density: 257 doubles, one after the other. */
__device__ double normal(word w, const double *outer) {
    const double *ratio = outer + 512, *density = outer + 1024;
    const double tail = 3.6541528853610088;
    double u = unit(w);
    int index = (int)(w & 0x1FF);
    if (u < ratio[index]) return u * outer[index];
    w &= ~0xE00ULL;
    word state = w;
    bool far = false;
    for (;;) {
        index = (int)(w & 0x1FF);
        int layer = index & 0xFF;
        u = unit(w);
        double x = u * outer[index];
        if (!far && u < ratio[index]) return x;
        far = far || layer == 255;
        double first = open_unit(state), second = open_unit(state);
        if (far) {
            double beyond = -log(first) / tail;
            if (-2.0 * log(second) > beyond * beyond) return copysign(tail + beyond, outer[index]);
        } else {
            double top = density[layer], bottom = density[layer + 1];
            if (__dadd_rn(bottom, __dmul_rn(first, top - bottom)) < exp(-(x * x) / 2.0)) return x;
        }
        word fresh = split_mix(state);
        if (!far) w = fresh;
    }
}

/* One row of the grid for each key; words start ... start + count - 1 of the stream. Whole numbers
   come as doubles, of which every launcher passes all 64 bits. */
extern "C" __global__ void fill_normal(REAL *out, const word *keys, const double *table,
                                       double role, double step, double first_word, double words) {
    long long start = (long long)first_word, count = (long long)words;
    long long block = start / 4 + (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long first = 4 * block - start;
    if (first >= count) return;
    word k0 = keys[2 * blockIdx.y], k1 = keys[2 * blockIdx.y + 1];
    word c0 = (word)block + 1, c1 = (word)role, c2 = (word)step, c3 = 0;
    for (int round = 0; round < 10; round++) {
        word high0 = __umul64hi(0xD2E7470EE14C6C93ULL, c0), low0 = 0xD2E7470EE14C6C93ULL * c0;
        word high1 = __umul64hi(0xCA5A826395121157ULL, c2), low1 = 0xCA5A826395121157ULL * c2;
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B97F4A7C15ULL;
        k1 += 0xBB67AE8584CAA73BULL;
    }
    word drawn[4] = {c0, c1, c2, c3};
    REAL *here = out + (long long)blockIdx.y * count;
    for (int lane = 0; lane < 4; lane++) {
        long long at = first + lane;
        if (at >= 0 && at < count) here[at] = (REAL)normal(drawn[lane], table);
    }
}
