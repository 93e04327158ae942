"""Small neural networks as a member of an AutoRanker: trained by scikit-learn, kept as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

__all__ = ["Layer", "NeuralNetworks"]

HIDDEN = (64, 32)  # neurons
EPOCHS = 60
NEVER_SURE = 1e-4  # chances are kept this far from 0 and 1, also far from the training rows


@dataclass(frozen=True)
class Layer:
    """Weights and biases from one layer of neurons to the next.

    Attributes
    ----------
    weights : ndarray of shape (n_before, n_after)
    bias : ndarray of shape (n_after,)
    """

    weights: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True)
class NeuralNetworks:
    """Fully connected networks with rectifiers; their mean chance of a positive is the score, as log-odds.

    Attributes
    ----------
    networks : tuple of tuple of Layer
    """

    networks: tuple[tuple[Layer, ...], ...]

    @classmethod
    def of(
        cls, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, seed: int = 0
    ) -> NeuralNetworks:
        """Train on rows of numbers on one scale: the fewer rows, the more networks.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> y = (X[:, 0] * X[:, 1] > 0.5).astype(float)
        >>> model = NeuralNetworks.of(X, y)
        >>> len(model.networks), bool(np.corrcoef(model.decision_function(X), y)[0, 1] > 0.7)
        (4, True)
        """
        from sklearn.neural_network import MLPClassifier

        n_rows = len(y)
        n_networks = 4 if n_rows < 3_000 else 2 if n_rows < 20_000 else 1
        networks = []
        for k in range(n_networks):
            # with this tol no epoch counts as progress: it ends after EPOCHS, without a warning
            fitted = MLPClassifier(
                HIDDEN, alpha=0.01, learning_rate_init=0.002, random_state=seed + k,
                batch_size=min(n_rows, int(np.clip(n_rows / 100, 64, 512))),
                tol=1e300, n_iter_no_change=EPOCHS - 2, max_iter=EPOCHS + 1,
            ).fit(X, y, weight)  # fmt: skip
            networks.append(tuple(map(Layer, fitted.coefs_, fitted.intercepts_)))
        return cls(tuple(networks))

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the scores of rows."""
        chance = np.mean([expit(_output(layers, X)) for layers in self.networks], axis=0)
        return logit(NEVER_SURE + (1 - 2 * NEVER_SURE) * chance)


def _output(layers: tuple[Layer, ...], X: np.ndarray) -> np.ndarray:
    """Return what the last neuron of a network says."""
    rows = X
    for layer in layers[:-1]:
        rows = np.maximum(rows @ layer.weights + layer.bias, 0.0)
    return (rows @ layers[-1].weights + layers[-1].bias)[:, 0]
