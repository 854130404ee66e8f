#!/usr/bin/env python3
"""Proves every family under every framework with all legal combinations of degrees 1, 2, 3.

combinations.py SHARDC [--every N] [--jobs N]    every N-th combination only; N at a time

Sizes are multiples of 12, so that 2, 3 and their products divide them. A combination that the checker refuses with a rule of the
framework (exit code 1 or 2 with nothing run) is not legal and is counted as such. Prints how many ran, and each one on which checker
and proof disagree (exit code 3) or a gradient is not the true one, with the command that shows it; the exit code is then 1."""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ATTENTION = {"hidden_size": 48, "num_hidden_layers": 4, "num_attention_heads": 24, "num_key_value_heads": 12, "head_dim": 12,
             "vocab_size": 144, "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": False}
FAMILIES = {
    "llama": {"architectures": ["LlamaForCausalLM"], "intermediate_size": 96, **ATTENTION},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "intermediate_size": 96, **ATTENTION},
    "qwen3_moe": {"architectures": ["Qwen3MoeForCausalLM"], "intermediate_size": 96, "moe_intermediate_size": 36, "num_experts": 36,
                  "num_experts_per_tok": 2, **ATTENTION},
    "mixtral": {"architectures": ["MixtralForCausalLM"], "intermediate_size": 96, "num_local_experts": 36, "num_experts_per_tok": 2,
                **ATTENTION},
    "deepseek_v3": {"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 48, "num_hidden_layers": 4, "first_k_dense_replace": 1,
                    "num_attention_heads": 24, "q_lora_rank": 36, "kv_lora_rank": 60, "qk_nope_head_dim": 12, "qk_rope_head_dim": 24,
                    "v_head_dim": 36, "intermediate_size": 96, "moe_intermediate_size": 36, "n_shared_experts": 2,
                    "n_routed_experts": 36, "num_experts_per_tok": 2, "n_group": 0, "topk_group": 0, "vocab_size": 144,
                    "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": False},
}
DEGREES = (1, 2, 3)


def torchtitan(directory):
    """World and arguments of each combination."""
    del directory
    for version, dp, cp, tp, ep, pp in itertools.product(("2026-08-05", "2026-08-10", "2026-08-20"), *[DEGREES] * 5):
        for sp in ("enable", "no-enable") if tp > 1 else ("enable",):
            flags = [f"--parallelism.data_parallel_shard_degree={dp}", f"--parallelism.context_parallel_degree={cp}",
                     f"--parallelism.tensor_parallel_degree={tp}", f"--parallelism.expert_parallel_degree={ep}",
                     f"--parallelism.pipeline_parallel_degree={pp}", f"--parallelism.{sp}-sequence-parallel",
                     "--parallelism.spmd_backend=spmd_types", "--parallelism.context_parallel_load_balancer=None"]
            flags += (["--training.max_context_length=144", "--training.num_tokens_per_microbatch_per_dp_rank=144",
                       "--training.disable_cuda_graphs"] if version == "2026-08-20" else ["--training.seq_len=144"])
            flags += ["activation-checkpoint:none"]
            yield dp * cp * tp * pp, ["--framework", f"torchtitan@{version}", "--", *flags]


def deepspeed(directory):
    for dp, sp, tp, ep, stage in itertools.product(*[DEGREES] * 4, (0, 1, 2, 3)):
        config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage}}
        if tp > 1:
            config["tensor_parallel"] = {"autotp_size": tp}
        if sp > 1:
            config["sequence_parallel_size"] = sp
        if ep > 1:
            config["expert_parallel"] = {"enabled": True, "autoep_size": ep}
        path = os.path.join(directory, f"ds-{sp}-{tp}-{ep}-{stage}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        yield dp * sp * tp, ["--framework", "deepspeed", "--config", path]


def colossalai(directory):
    del directory
    modes = {1: [None], 2: ["all_to_all", "ring_attn"], 3: ["all_to_all", "ring_attn"]}
    for version, dp, sp, tp, ep, pp, stage in itertools.product(("0.5.0", "6466"), *[DEGREES] * 5, (0, 1, 2)):
        for mode in modes[sp] + (["split_gather", "ring"] if sp == 1 and tp > 1 else []):
            flags = ["--tp", tp, "--pp", pp, "--zero", stage] + (["--ep", ep] if ep > 1 else []) + (["--sp", sp] if sp > 1 else [])
            flags += ["--mbs", 1] if pp > 1 else []
            flags += ["--enable_sequence_parallelism", "--sequence_parallelism_mode", mode] if mode else []
            yield dp * sp * tp * pp, ["--framework", f"colossalai@{version}", "--", *map(str, flags)]


def prove(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    ran = ": proved:" in last or ": refuted:" in last
    return command, done.returncode, ran, done.stdout, ": unable:" in last


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shardc")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        commands = []
        for name, config in FAMILIES.items():
            path = os.path.join(directory, name + ".json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            for framework in (torchtitan, deepspeed, colossalai):
                for world, rest in framework(directory):
                    commands.append([arguments.shardc, "prove", "--model", path, "--world", str(world), *rest])
        commands = commands[arguments.offset::arguments.every]
        counts = {"proved": 0, "refuted by both": 0, "not legal": 0, "unable": 0, "disagreed": 0}
        shown = {}
        with ThreadPoolExecutor(arguments.jobs) as pool:
            for command, code, ran, text, unable in pool.map(prove, commands):
                crashed = code not in (0, 1, 2, 3)
                refuted = ran and ": refuted:" in text.splitlines()[-1]
                kind = ("disagreed" if code == 3 or crashed else "unable" if unable else "proved" if code == 0
                        else "refuted by both" if refuted else "not legal")
                counts[kind] += 1
                if kind in ("disagreed", "unable"):
                    reason = next((l for l in text.splitlines() if l.startswith(("refuted", "cannot run"))), f"exit code {code}")
                    shown.setdefault((kind, reason), " ".join(command))
        for (kind, reason), command in shown.items():
            print(f"{kind}: {reason}\n    {command}")
        print(f"{len(commands)} combinations: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
        return 1 if counts["disagreed"] or counts["unable"] or counts["proved"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
