# SPDX-License-Identifier: Apache-2.0
"""octavo.plan: arguments in every form, the document, and what it refuses."""

import inspect
import json

import octavo
import pytest

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 8,
    "vocab_size": 512,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "float32",
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "rope_theta": 10000.0,
}
WHOLE_LOGITS = {"generate": {"logits_tv": ["data", None]}}


@pytest.fixture(name="config")
def config_file(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def wire(plan, phase="generate"):
    return plan[phase]["wire_bytes_per_rank"]


def test_document(config):
    plan = octavo.plan(config, mesh={"data": 2, "model": 2}, tokens=64)
    assert plan["ranks"] == 4 and plan["tokens"] == 64
    assert plan["mesh"] == {"data": 2, "expert": 1, "seq": 1, "model": 2}
    tensors = {tensor["name"]: tensor for tensor in plan["tensors"]}
    assert tensors["ffw_weight_df"]["shard_shape"] == [64, 128]
    for phase in ("prefill", "generate"):
        collectives = plan[phase]["collectives"]
        assert collectives and all(c["reason"] and c["group"] > 1 for c in collectives)
        sent = sum(c["wire_bytes"] for c in collectives)
        assert abs(sent - wire(plan, phase)) <= len(collectives)
        assert plan[phase]["time"]["total_s"] > 0


def test_forms_are_the_same(config, tmp_path):
    file = tmp_path / "rules.json"
    sharding = {"sharding": {"sharding_strategy": {"tensor_parallelism": 2}, "logical_rules": WHOLE_LOGITS}}
    file.write_text(json.dumps(sharding))
    one = octavo.plan(str(config), mesh="model=2", rules=WHOLE_LOGITS)
    assert octavo.plan(config, mesh={"model": 2}, rules=WHOLE_LOGITS) == one
    assert octavo.plan(config, rules=sharding) == one
    named = octavo.plan(config, rules=file)
    assert [named[p]["collectives"] for p in ("prefill", "generate")] == [
        one[p]["collectives"] for p in ("prefill", "generate")
    ]
    assert octavo.plan(config, mesh="model=-1", devices=2, rules=WHOLE_LOGITS) == one


def test_rules_cost(config):
    default, whole = (octavo.plan(config, mesh="model=2", rules=r) for r in (None, WHOLE_LOGITS))
    assert wire(whole) > wire(default)
    assert wire(whole, "prefill") == wire(default, "prefill")


def test_options(config):
    plan = octavo.plan(config, mesh="model=2", phase="generate", link_gbps=1, memory_gbps=2.5)
    assert "prefill" not in plan and plan["link_gbps"] == 1 and plan["memory_gbps"] == 2.5
    half, whole = (octavo.plan(config, mesh="model=2", dtype=d) for d in ("bf16", "f32"))
    assert half["memory_per_rank"]["weights"] < whole["memory_per_rank"]["weights"]
    last, every = (octavo.plan(config, mesh="model=2", logits=which, rules={"all": {"logits_tv": [None, None]}})
                   for which in ("last", "all"))
    assert wire(every, "prefill") > wire(last, "prefill")
    slow = octavo.plan(config, mesh="model=2", link_gbps=0.001)
    fast = octavo.plan(config, mesh="model=2", link_gbps=1000)
    assert slow["generate"]["time"]["wire_s"] > fast["generate"]["time"]["wire_s"]


def test_search(config):
    found = octavo.plan(config, mesh="model=2", search=3)["search"]
    assert 1 <= len(found) <= 3
    default = octavo.plan(config, mesh="model=2")
    best = octavo.plan(config, mesh="model=2", rules=found[0]["rules"])
    for phase in ("prefill", "generate"):
        assert found[0]["summary"][phase]["time"] == best[phase]["time"]
    total = [sum(plan[p]["time"]["total_s"] for p in ("prefill", "generate")) for plan in (best, default)]
    assert total[0] <= total[1]


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (ValueError, "'x' is no axis", {"mesh": {"x": 1}}),
        (TypeError, "neither a text nor a mapping", {"mesh": 4}),
        (TypeError, r"mesh\['model'\]\): 2.5 is no integer", {"mesh": {"model": 2.5}}),
        (ValueError, "zero byte", {"mesh": "model=2\0"}),
        (ValueError, "model", {"mesh": "model=0"}),
        (ValueError, "3", {"mesh": "model=2", "devices": 3}),
        (ValueError, "devices", {"devices": 0}),
        (ValueError, "'foo' is none of all, prefill, generate", {"rules": {"foo": {}}}),
        (TypeError, "list is no mapping", {"rules": {"all": []}}),
        (TypeError, "3 is no tensor's name", {"rules": {"all": {3: None}}}),
        (TypeError, "JSON", {"rules": {"all": {"logits_tv": object()}}}),
        (ValueError, "logits_vt", {"rules": {"all": {"logits_vt": ["data", None]}}}),
        (ValueError, "tensor", {"rules": {"all": {"logits_tv": ["tensor", None]}}}),
        (ValueError, "'x' is none of", {"rules": {"sharding": {"x": 1}}}),
        (ValueError, "'degree' is none of", {"rules": {"sharding": {"sharding_strategy": {"degree": 2}}}}),
        (TypeError, "int is no path", {"rules": 3}),
        (FileNotFoundError, "no-rules.json", {"rules": "/no-rules.json"}),
        (ValueError, "tokens", {"tokens": 0}),
        (TypeError, "'many' is no integer", {"tokens": "many"}),
        (ValueError, "both, prefill, generate", {"phase": "decode"}),
        (ValueError, "file, f32, bf16", {"dtype": "q4"}),
        (ValueError, "last, all", {"logits": 1}),
        (ValueError, "above 0", {"link_gbps": -1}),
        (ValueError, "above 0", {"memory_gbps": float("nan")}),
        (TypeError, "is no number", {"link_gbps": "3"}),
        (ValueError, "search", {"search": -1}),
        (ValueError, "rules of its own", {"search": 2, "rules": WHOLE_LOGITS}),
    ],
)
def test_refused(config, error, match, arguments):
    with pytest.raises(error, match=match):
        octavo.plan(config, **arguments)


def test_refused_models(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        octavo.plan(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="NoneType is no path"):
        octavo.plan(None)
    bad = tmp_path / "config.json"
    bad.write_text("{")
    with pytest.raises(ValueError, match="config.json"):
        octavo.plan(bad)


def test_interface():
    parameters = inspect.signature(octavo.plan).parameters
    assert list(parameters) == [
        "model", "mesh", "devices", "rules", "tokens", "phase", "dtype", "logits", "link_gbps", "memory_gbps", "search"
    ]
    for name in parameters:
        assert name in octavo.plan.__doc__
    assert all(p.kind is p.KEYWORD_ONLY for p in list(parameters.values())[1:])
