r"""
Watch an MLP learn, with SGD and with Adam
==========================================

A recorder follows the weights of an MLP through its first hundred steps. Before training, an
inspection says at which learning rate one step would push a direction out of the random bulk.
At a rate that is smaller by some factor, about that many steps are needed: both optimizers are run
below the critical rate, and the first spike appears about when their steps add up to it.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

import giantsteps as gs
from giantsteps.practice import Recorder

digits = load_digits()
x = torch.tensor(digits.data / 16 - 0.3, dtype=torch.float32)
y = torch.tensor(digits.target)
torch.manual_seed(0)
start = torch.nn.Sequential(
    torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(),
    torch.nn.Linear(128, 10),
)  # fmt: skip

before = gs.inspect(start, data=(x.numpy(), y.numpy()), probes=False)
print(before)

# %%
# SGD at a fifteenth of the critical rate of the middle layer, Adam at a tenth of its own.

middle = {gradient.name: gradient for gradient in before.gradients}["2.weight"]
rates = {"SGD": middle.critical_rate / 15, "Adam": middle.critical_rate_sign / 10}
records = {}
for name, rate in rates.items():
    network = copy.deepcopy(start)
    optimizer = getattr(torch.optim, name)(network.parameters(), lr=rate)
    recorder = Recorder(network, optimizer, every=2)
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()
    records[name] = recorder.record
    steps, spikes = records[name].get("2.weight", "spikes")
    first = steps[spikes > 0]
    print(f"{name}, rate {rate:.2g}: first spike at step", first[0] if len(first) else "none")

# %%
# Singular values of the middle layer over the steps. The theory holds as long as the gradient is
# what it was at the start.

for name, record in records.items():
    display = record.plot("2.weight")
    display.axes_[0].set_title(f"{name}, 2.weight", loc="right", size=8)
plt.show()

# %%
# After training: what an inspection says now.

print(gs.inspect(network, base=start))
print(np.round(records["Adam"].to_frame().groupby("layer")["spikes"].last(), 0).to_dict())
