#!/usr/bin/env python3
"""reference_data.py REFERENCE_FOLDER - copy the references that the tests keep into tests/data.

The models are synthetic (random weights); REFERENCE_FOLDER holds them with expected logits and
transcripts that no part of this project made. Copied are the three models whose greedy choices
have wide margins, what is expected of them, and one more size of pass.
"""
import pathlib
import shutil
import sys

MODELS = ["llada-tiny-sharp-Q4_K_M", "llada-tiny-sharp-Q8_0", "dream-tiny-sharp-Q4_K_M"]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    reference = pathlib.Path(sys.argv[1])
    data = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
    for name in MODELS:
        files = [f"models/{name}.gguf", f"transcripts/{name}.transcripts.json"]
        files += [f"logits/{name}.logits.{end}" for end in ("json", "f32")]
        for file in files:
            target = data / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(reference / file, target)
            print(f"{target} ({target.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
