"""What to train with: methods ranked by predicted time to quality, a rate from a pilot, a sentence that says why.

How long an epoch takes is a formula in the sizes of the data (``costs``), fitted to measured times; how many epochs a
quality takes is what it took on the measured data sets most like yours (``learned``). Both come from
``benchmark learning``, and are kept in ``model.json`` with the machine that they were measured on (``model``).
"""
