// Forward passes of one model through a peer's library, one a line of standard input.
//
// dllm-peer compiles this against the llama.h of the build that it is given. PEER_IK chooses the
// older interface of ik_llama.cpp. `driver auto|on|off FILE` loads the file with repacking and
// that kind of flash attention, then answers each line with one line; an error with "error TEXT":
//
//   open THREADS ID,ID,...      "ok", a context for these tokens, without a causal mask
//   run                         "WALL CPU IDLE": ms of a pass with the logits of every position,
//                               ms of CPU in it, ms of CPU between this pass and the last answer
//   logits POSITION,... FILE    "ok VOCAB" and the last pass's rows of logits as raw f32
//   facts                       what the library says of its build
#include "llama.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

namespace {

// The real standard output: libraries print on theirs, which is sent to standard error.
FILE *replies = nullptr;

void reply(const std::string &text) {
    std::string line = text;
    for (char &symbol : line) {
        symbol = symbol == '\n' ? ' ' : symbol;
    }
    std::fprintf(replies, "%s\n", line.c_str());
    std::fflush(replies);
}

double wall_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

double cpu_ms() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * double(now.tv_sec) + 1e-6 * double(now.tv_nsec);
}

std::vector<int> numbers(const std::string &list) {
    std::vector<int> found;
    std::istringstream items(list);
    for (std::string item; std::getline(items, item, ',');) {
        found.push_back(std::atoi(item.c_str()));
    }
    return found;
}

llama_model *load(const char *file) {
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
#ifdef PEER_IK
    // It repacks what it has read, not what it has mapped.
    params.repack_tensors = true;
    params.use_mmap = false;
#else
    params.use_extra_bufts = true;
#endif
    return llama_model_load_from_file(file, params);
}

llama_context_params context_params(int rows, int threads, const std::string &flash) {
    llama_context_params params = llama_context_default_params();
    // Caches are read in blocks of 256 tokens.
    params.n_ctx = uint32_t((rows + 255) / 256 * 256);
    params.n_batch = params.n_ubatch = uint32_t(rows);
    params.n_threads = params.n_threads_batch = threads;
#ifdef PEER_IK
    params.flash_attn = flash != "off";
#else
    params.no_perf = true;
    params.flash_attn_type = flash == "on"    ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                             : flash == "off" ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                                              : LLAMA_FLASH_ATTN_TYPE_AUTO;
#endif
    return params;
}

// One model and, once opened, one context and canvas.
class Session {
  public:
    Session(llama_model *model, std::string flash) : model_(model), flash_(std::move(flash)) {}

    bool open(int threads, const std::vector<int> &ids) {
        if (context_) {
            llama_free(context_);
            llama_batch_free(batch_);
        }
        const int rows = int(ids.size());
        context_ = llama_init_from_model(model_, context_params(rows, threads, flash_));
        if (!context_) {
            return false;
        }
        llama_set_causal_attn(context_, false);
        batch_ = llama_batch_init(rows, 0, 1);
        batch_.n_tokens = rows;
        for (int i = 0; i < rows; i++) {
            batch_.token[i] = ids[i];
            batch_.pos[i] = i;
            batch_.n_seq_id[i] = 1;
            batch_.seq_id[i][0] = 0;
            batch_.logits[i] = 1;
        }
        return true;
    }

    bool is_open() const { return context_ != nullptr; }

    bool run() {
        forget();
        const bool done = llama_decode(context_, batch_) == 0;
        llama_synchronize(context_);
        return done;
    }

    // The number of values a row, or 0.
    size_t logits(const std::vector<int> &positions, const std::string &file) {
        const auto vocab = size_t(llama_vocab_n_tokens(llama_model_get_vocab(model_)));
        FILE *out = std::fopen(file.c_str(), "wb");
        bool good = out != nullptr;
        for (int position : positions) {
            const float *row = good ? llama_get_logits_ith(context_, position) : nullptr;
            good = row && std::fwrite(row, sizeof(float), vocab, out) == vocab;
        }
        return out && std::fclose(out) == 0 && good ? vocab : 0;
    }

  private:
    // What an earlier pass left in the cache, where the architecture has one.
    void forget() {
#ifdef PEER_IK
        llama_kv_cache_clear(context_);
#else
        if (llama_memory_t memory = llama_get_memory(context_)) {
            llama_memory_clear(memory, true);
        }
#endif
    }

    llama_model *model_;
    std::string flash_;
    llama_context *context_ = nullptr;
    llama_batch batch_{};
};

std::string timed_run(Session &session, double &cpu_after) {
    const double cpu_before = cpu_ms(), start = wall_ms();
    if (!session.run()) {
        return "error the forward pass failed";
    }
    const double wall = wall_ms() - start, idle = cpu_before - cpu_after;
    cpu_after = cpu_ms();
    char text[96];
    std::snprintf(text, sizeof text, "%.3f %.3f %.3f", wall, cpu_after - cpu_before, idle);
    return text;
}

std::string answer(Session &session, const std::string &line, double &cpu_after) {
    std::istringstream words(line);
    std::string command, list, file;
    words >> command;
    if (command == "facts") {
        return llama_print_system_info();
    }
    if (command == "open") {
        int threads = 0;
        words >> threads >> list;
        return session.open(threads, numbers(list)) ? "ok" : "error cannot make a context";
    }
    if (!session.is_open()) {
        return "error nothing is open";
    }
    if (command == "run") {
        return timed_run(session, cpu_after);
    }
    if (command == "logits") {
        words >> list >> std::ws;
        std::getline(words, file);
        const size_t vocab = session.logits(numbers(list), file);
        return vocab ? "ok " + std::to_string(vocab) : "error cannot write the logits";
    }
    return "error no command " + command;
}

} // namespace

int main(int argc, char **argv) {
    // Its parent may end while this is stopped.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    replies = fdopen(dup(STDOUT_FILENO), "w");
    if (argc != 3 || !replies || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return 2;
    }
    llama_backend_init();
    llama_model *model = load(argv[2]);
    if (!model) {
        reply("error cannot load the file");
        return 1;
    }
    Session session(model, argv[1]);
    reply("ok");
    double cpu_after = cpu_ms();
    for (std::string line; std::getline(std::cin, line);) {
        reply(answer(session, line, cpu_after));
        if (line != "run") {
            cpu_after = cpu_ms();
        }
    }
    return 0;
}
