// A library that answers every call of the driver and computes nothing: its logits are noise.
// It says what the tests tell it to say while it loads: PEER_STUB_SAYS.
#include "llama.h"

#include <cstdio>
#include <cstdlib>

struct llama_model {};
struct llama_context {};

namespace {
constexpr int VOCAB = 2048;
float row[VOCAB];
bool causal = true;
} // namespace

extern "C" {
void llama_backend_init() {}
llama_model_params llama_model_default_params() { return {}; }
llama_context_params llama_context_default_params() { return {}; }

llama_model *llama_model_load_from_file(const char *file, llama_model_params) {
    if (const char *text = std::getenv("PEER_STUB_SAYS")) {
        std::printf("%s\n", text);
        std::fflush(stdout);
    }
    FILE *model = std::fopen(file, "rb");
    return model && std::fclose(model) == 0 ? new llama_model : nullptr;
}

llama_context *llama_init_from_model(llama_model *, llama_context_params params) {
    return params.n_ctx % 256 == 0 && params.n_threads > 0 ? new llama_context : nullptr;
}

void llama_free(llama_context *context) { delete context; }
void llama_set_causal_attn(llama_context *, bool on) { causal = on; }

llama_batch llama_batch_init(int32_t tokens, int32_t, int32_t) {
    auto **sequences = new int32_t *[tokens];
    for (int i = 0; i < tokens; i++) {
        sequences[i] = new int32_t[1];
    }
    return {0,         new int32_t[tokens], nullptr, new int32_t[tokens], new int32_t[tokens],
            sequences, new int8_t[tokens]};
}

void llama_batch_free(llama_batch) {}

// Fails where the driver has not asked for what it must.
int32_t llama_decode(llama_context *, llama_batch batch) {
    bool good = !causal;
    for (int i = 0; i < batch.n_tokens; i++) {
        good = good && batch.logits[i] == 1 && batch.pos[i] == i && batch.token[i] < VOCAB;
    }
    return good ? 0 : 1;
}

void llama_synchronize(llama_context *) {}

float *llama_get_logits_ith(llama_context *, int32_t position) {
    uint32_t state = uint32_t(position);
    for (float &value : row) {
        state = state * 1664525u + 1013904223u;
        value = float(state >> 8) / float(1 << 24);
    }
    return row;
}

const llama_vocab *llama_model_get_vocab(const llama_model *) { return nullptr; }
int32_t llama_vocab_n_tokens(const llama_vocab *) { return VOCAB; }
const char *llama_print_system_info() { return "none\nat all"; }
#ifdef PEER_IK
void llama_kv_cache_clear(llama_context *) {}
#else
llama_memory_t llama_get_memory(const llama_context *) { return nullptr; }
void llama_memory_clear(llama_memory_t, bool) {}
#endif
}
