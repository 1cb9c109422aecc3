// A stand-in for llama.h: as much of both generations of the interface as the driver uses. The
// library behind it computes nothing.
#pragma once

#include <cstddef>
#include <cstdint>

struct llama_model;
struct llama_context;
struct llama_vocab;
typedef struct llama_memory_stub *llama_memory_t;

enum llama_flash_attn_type {
    LLAMA_FLASH_ATTN_TYPE_AUTO = -1,
    LLAMA_FLASH_ATTN_TYPE_DISABLED = 0,
    LLAMA_FLASH_ATTN_TYPE_ENABLED = 1,
};

struct llama_model_params {
    int32_t n_gpu_layers;
#ifdef PEER_IK
    bool use_mmap, repack_tensors;
#else
    bool use_extra_bufts;
#endif
};

struct llama_context_params {
    uint32_t n_ctx, n_batch, n_ubatch;
    int32_t n_threads, n_threads_batch;
#ifdef PEER_IK
    bool flash_attn;
#else
    llama_flash_attn_type flash_attn_type;
    bool no_perf;
#endif
};

struct llama_batch {
    int32_t n_tokens;
    int32_t *token;
    float *embd;
    int32_t *pos;
    int32_t *n_seq_id;
    int32_t **seq_id;
    int8_t *logits;
};

extern "C" {
void llama_backend_init();
llama_model_params llama_model_default_params();
llama_context_params llama_context_default_params();
llama_model *llama_model_load_from_file(const char *file, llama_model_params params);
llama_context *llama_init_from_model(llama_model *model, llama_context_params params);
void llama_free(llama_context *context);
void llama_set_causal_attn(llama_context *context, bool causal);
llama_batch llama_batch_init(int32_t tokens, int32_t embd, int32_t sequences);
void llama_batch_free(llama_batch batch);
int32_t llama_decode(llama_context *context, llama_batch batch);
void llama_synchronize(llama_context *context);
float *llama_get_logits_ith(llama_context *context, int32_t position);
const llama_vocab *llama_model_get_vocab(const llama_model *model);
int32_t llama_vocab_n_tokens(const llama_vocab *vocab);
const char *llama_print_system_info();
#ifdef PEER_IK
void llama_kv_cache_clear(llama_context *context);
#else
llama_memory_t llama_get_memory(const llama_context *context);
void llama_memory_clear(llama_memory_t memory, bool data);
#endif
}
