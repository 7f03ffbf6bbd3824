"""What to train with: methods ranked by predicted time to quality, a rate from a pilot, a sentence that says why.

``choice`` is where a choice begins: by a race of short fits where rows are sparse (``raced``, ``race``), else by what
was measured on other data (``measured``, ``ranking``, ``pilot``). Both try methods out in ``trial``, and give a
``chosen.Choice``.

How long an epoch takes is a formula in the sizes of the data (``costs``), fitted to measured times; how many epochs a
quality takes is what it took on the measured data sets most like yours (``learned``). Both come from
``benchmark learning``, and are kept in ``model.json`` with the machine that they were measured on (``model``).
"""
