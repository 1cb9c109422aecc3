"""Writes a checkpoint as a GGUF file of architecture `llada`, quantized as Q4_K_M or in f32.

    python export.py RUN/checkpoint.pt RUN/tokenizer.json demo.gguf [--f32]

Every tensor is read back and compared with what was meant to be written.
"""

import argparse
import json

import gguf
import numpy as np
import torch
from gguf.quants import dequantize

from evaluate import load
from model import matrices
from quantize import Q4K, kind_of
from tokens import CONTROLS, END_OF_TEXT, END_OF_TURN, MASK, START

NAME = "dllm-rt demo"
# Canvas and prompt: a tenth of this is what training saw, and positions are relative.
CONTEXT_TOKENS = 1024
TEMPLATE = (
    "{{ bos_token }}{% for turn in messages %}"
    "<|start_header_id|>{{ turn.role }}<|end_header_id|>\n\n{{ turn.content | trim }}<|eot_id|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)


def add_metadata(writer, config, quantized):
    writer.add_name(NAME)
    writer.add_license("Apache-2.0")
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.ff)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.heads)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_freq_base(config.theta)
    writer.add_rope_dimension_count(config.width // config.heads)
    writer.add_vocab_size(config.vocab)
    writer.add_causal_attention(False)
    writer.add_bool("diffusion.shift_logits", False)
    if quantized:
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    kind = gguf.LlamaFileType.MOSTLY_Q4_K_M if quantized else gguf.LlamaFileType.ALL_F32
    writer.add_file_type(kind)


def add_tokenizer(writer, path):
    bpe = json.load(open(path))["model"]
    tokens = sorted(bpe["vocab"], key=bpe["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in bpe["merges"]]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("bailingmoe")
    writer.add_token_list(tokens)
    writer.add_token_types([control if i < len(CONTROLS) else normal for i in range(len(tokens))])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(START)
    writer.add_eos_token_id(END_OF_TEXT)
    writer.add_eot_token_id(END_OF_TURN)
    writer.add_pad_token_id(END_OF_TEXT)
    writer.add_mask_token_id(MASK)
    # The chat template begins with it.
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def vectors(model):
    for index, block in enumerate(model.blocks):
        yield f"blk.{index}.attn_norm", block.attn_norm
        yield f"blk.{index}.ffn_norm", block.ffn_norm
    yield "output_norm", model.output_norm


def add_tensors(writer, model, quantized):
    """Adds all tensors; the values that a reader must find, by name."""
    expected = {}
    for name, weight in matrices(model):
        weight = weight.detach()
        if quantized:
            kind = kind_of(name, model.config.layers)
            blocks = kind.of(weight)
            expected[name] = blocks.values().view_as(weight).numpy()
            data = blocks.packed().view(weight.shape[0], -1).numpy()
            ggml = gguf.GGMLQuantizationType["Q4_K" if kind is Q4K else "Q6_K"]
            writer.add_tensor(f"{name}.weight", data, raw_dtype=ggml)
        else:
            expected[name] = weight.numpy()
            writer.add_tensor(f"{name}.weight", expected[name])
    for name, weight in vectors(model):
        expected[name] = weight.detach().numpy()
        writer.add_tensor(f"{name}.weight", expected[name])
    return expected


def check(path, expected):
    """Compares the file, as the package decodes it, with what it must hold."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    for name, values in expected.items():
        tensor = tensors.pop(f"{name}.weight")
        found = dequantize(tensor.data, tensor.tensor_type).reshape(values.shape)
        # A product's order of rounding may differ by one bit.
        assert np.allclose(found, values, rtol=3e-7, atol=1e-12), f"{name} reads back otherwise"
    assert not tensors, f"not meant to be there: {sorted(tensors)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("tokenizer")
    parser.add_argument("out")
    parser.add_argument("--f32", action="store_true", help="do not quantize")
    args = parser.parse_args()
    torch.set_num_threads(2)
    model, step = load(args.checkpoint)
    writer = gguf.GGUFWriter(args.out, "llada")
    add_metadata(writer, model.config, not args.f32)
    add_tokenizer(writer, args.tokenizer)
    expected = add_tensors(writer, model, not args.f32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    check(args.out, expected)
    print(f"{args.out}: step {step}, {len(expected)} tensors")


if __name__ == "__main__":
    main()
