"""Prints what PyTorch's optimizers make of 64 parameters, as JSON.

The gradient of update t is a * w - b in 32 bits, where w are the parameters
before it, so that every update depends on all updates before.
"""

import json
import sys

import torch

COUNT, UPDATES = 64, 20

# By name: the optimizer, what it is made with, and its recipe beside the names of slots.
CASES = {
    "sgd": ("sgd", {"lr": 0.1}),
    "sgd, decay": ("sgd", {"lr": 0.1, "weight_decay": 0.01}),
    "momentum": ("sgd", {"lr": 0.1, "momentum": 0.9}),
    "momentum, decay": ("sgd", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "nesterov": ("sgd", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    "adam": ("adam", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8}),
    "adam, decay": ("adam", {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-8, "weight_decay": 0.01}),
    "adamw": ("adamw", {"lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}),
    "adagrad": ("adagrad", {"lr": 0.05, "eps": 1e-10}),
    "adagrad, decay": ("adagrad", {"lr": 0.05, "eps": 1e-10, "weight_decay": 0.01}),
}
MAKERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "adagrad": torch.optim.Adagrad}
SLOTS = {"sgd": ["momentum_buffer"], "adam": ["exp_avg", "exp_avg_sq"], "adamw": ["exp_avg", "exp_avg_sq"], "adagrad": ["sum"]}


def begin():
    """Returns the parameters, a and b."""
    generator = torch.Generator().manual_seed(7)
    w = torch.randn(COUNT, generator=generator)
    a = 0.5 + torch.rand(COUNT, generator=generator)
    b = torch.randn(COUNT, generator=generator)
    return w, a, b


def run(name, settings, updates):
    """Returns the parameters and the slots after so many updates."""
    w, a, b = begin()
    parameter = torch.nn.Parameter(w)
    optimizer = MAKERS[name]([parameter], **settings)
    for _ in range(updates):
        parameter.grad = (a * parameter - b).detach()
        optimizer.step()
    state = optimizer.state[parameter]
    slots = [state[slot] for slot in SLOTS[name] if state.get(slot) is not None]
    return [v.tolist() for v in [parameter.detach(), *slots]]


def recipe(name, settings):
    """Returns settings by the names of a recipe."""
    settings = dict(settings)
    beta1, beta2 = settings.pop("betas", (0, 0))
    named = {"name": name, "learning_rate": settings.pop("lr"), "beta1": beta1, "beta2": beta2, "epsilon": settings.pop("eps", 0)}
    return {**named, **settings}


def main():
    torch.set_num_threads(1)
    w, a, b = begin()
    cases = []
    for title, (name, settings) in CASES.items():
        cases.append({"name": title, "recipe": recipe(name, settings), "updates": 1, "vectors": run(name, settings, 1)})
        if "eps" in settings:
            settings = {**settings, "eps": 1e-3}
        cases.append({"name": title, "recipe": recipe(name, settings), "updates": UPDATES, "vectors": run(name, settings, UPDATES)})
    numbers = {"torch": torch.__version__, "w": w.tolist(), "a": a.tolist(), "b": b.tolist(), "cases": cases}
    text = json.dumps(json.loads(json.dumps(numbers), parse_float=lambda x: float("%.9g" % float(x))), separators=(",", ":"))
    sys.stdout.write(text.replace('{"name"', '\n{"name"') + "\n")


main()
