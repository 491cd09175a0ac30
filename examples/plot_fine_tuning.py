r"""
A base model and its fine-tuned versions
========================================

Fine-tuning changes the weights only a little, and in few directions. A base model is trained on
upright digits, then tuned on mirrored ones in two ways: with all weights, or with an adapter of
rank two. The files are compared without loading any code from them.
"""

import copy
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import save_file
from sklearn.datasets import load_digits

import giantsteps as gs

digits = load_digits()
upright = torch.tensor(digits.data / 16 - 0.3, dtype=torch.float32)
mirrored = upright.reshape(-1, 8, 8).flip(2).reshape(-1, 64)
classes = torch.tensor(digits.target)


def train(network, parameters, x, steps, rate):
    optimizer = torch.optim.Adam(parameters, lr=rate)
    for _ in steps:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), classes).backward()
        optimizer.step()


torch.manual_seed(0)
base = torch.nn.Sequential(
    torch.nn.Linear(64, 200), torch.nn.ReLU(), torch.nn.Linear(200, 200), torch.nn.ReLU(),
    torch.nn.Linear(200, 10),
)  # fmt: skip
train(base, base.parameters(), upright, range(200), 1e-3)

# %%
# All weights, at a small rate.

tuned = copy.deepcopy(base)
train(tuned, tuned.parameters(), mirrored, range(60), 3e-4)

# %%
# An adapter: the middle layer plus a product of two thin matrices, merged afterwards.


class Adapter(torch.nn.Module):
    def __init__(self, layer, rank):
        super().__init__()
        self.layer = layer
        self.down = torch.nn.Parameter(torch.randn(rank, layer.in_features) / 14)
        self.up = torch.nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.down.T @ self.up.T


adapted = copy.deepcopy(base)
adapter = Adapter(adapted[2], rank=2)
adapted[2] = adapter
train(adapted, [adapter.down, adapter.up], mirrored, range(150), 3e-3)
adapter.layer.weight.data += (adapter.up @ adapter.down).detach()
adapted[2] = adapter.layer

for name, network in (("base", base), ("tuned", tuned), ("adapted", adapted)):
    right = (network(mirrored).argmax(dim=1) == classes).float().mean()
    print(f"{name}: {100 * right:.0f} % of the mirrored digits")

# %%
# Only the files are needed from here on; the same on the command line is
# ``giantsteps inspect tuned.safetensors --base base.safetensors --html report.html``.

with TemporaryDirectory() as folder:
    files = {}
    for name, network in (("base", base), ("tuned", tuned), ("adapted", adapted)):
        files[name] = Path(folder) / f"{name}.safetensors"
        save_file(network.state_dict(), files[name])
    found = {name: gs.inspect(files[name], base=files["base"]) for name in ("tuned", "adapted")}

print(found["tuned"])
print(found["adapted"])
found["tuned"].plot()

# %%
# How the change lies to the base: cosines of the leading vectors.

columns = ["layer", "relative_norm", "cosine.change-base.left", "cosine.change-base.right"]
print(found["tuned"].to_frame("changes")[columns].round(2).to_string(index=False))
