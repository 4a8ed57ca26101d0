# SPDX-License-Identifier: Apache-2.0
"""Makes all variables of a ResNet50 and its Adam, as each task of a group does; the chief writes the seconds to a file.

variables.py FILE
"""

import os
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf

if "DTJOB_ROLE" in os.environ:
    chief = os.environ["DTJOB_ROLE"] == "chief"
else:
    chief = '"type": "chief"' in os.environ["TF_CONFIG"]
    tf.distribute.experimental_set_strategy(tf.distribute.MultiWorkerMirroredStrategy())
strategy = tf.distribute.get_strategy()
began = time.monotonic()
model = keras.applications.ResNet50(weights=None)
optimizer = keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
strategy.run(lambda: None)  # from here on they must be alike
if chief:
    unfinished = Path(f"{sys.argv[1]}.unfinished")
    unfinished.write_text(f"{time.monotonic() - began} {len(model.variables) + len(optimizer.variables)}")
    unfinished.rename(sys.argv[1])
