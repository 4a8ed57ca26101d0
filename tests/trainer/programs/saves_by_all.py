"""Every task saves to the same files, again and again, while a thread reads them."""

import threading
import zipfile
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

SAVES = 6
model = keras.Sequential([keras.Input((512,)), keras.layers.Dense(1024), keras.layers.Dense(1024)])
model.compile("adam", "mse")
over, broken = threading.Event(), []
path = Path("model.keras")


def read() -> None:
    while not over.is_set():
        if path.exists():
            try:
                broken.extend(zipfile.ZipFile(path).testzip() or [])
            except zipfile.BadZipFile as error:
                broken.append(str(error))


reader = threading.Thread(target=read)
reader.start()
for _ in range(SAVES):
    model.save(path)
    model.save_weights("some.weights.h5")
    loaded = keras.models.load_model(path)
    assert all(np.array_equal(a, b) for a, b in zip(loaded.get_weights(), model.get_weights(), strict=True))
model.save_weights(f"cut-{dt.is_chief()}.weights.h5", max_shard_size=1.0)
over.set()
reader.join()
assert not broken, broken
assert not list(Path().glob(".*-model.keras"))
print("saved", dt.is_chief())
