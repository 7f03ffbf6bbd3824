"""Skip-gram: two tables of vectors, so that a word's inner products with the others tell which stand near it.

    s_xy = <in_x, out_y>,   p(y | x) = e^s_xy / sum_k e^s_xk        (Mikolov et al. 2013; Yen et al. 2018, eqs. 8, 9)

``corpus`` numbers the words of a text, ``counts`` collapses its pairs, ``kernels`` take the steps of sampled methods,
``collapsed`` those of gradient descent over all of the pairs, ``fit`` goes over the text and can be resumed,
``files`` reads and writes what word2vec does, ``neighbours`` looks for words nearby.
"""
