"""Spectral embedding of tree paths, at the level of leaves.

Rows of one leaf have the same path, so the kernel matrix of the rows is that of the leaves with rows
repeated, and its eigenvectors are constant on leaves: a problem of the size of the tree, and new rows
have exact coordinates.
"""

from __future__ import annotations

import numpy as np

from toprank.margin.path_tree import PathTree

__all__ = ["leaf_coordinates", "leaf_paths"]


def leaf_paths(tree: PathTree) -> np.ndarray:
    """The full signed path vector of every leaf (rows of other nodes are 0)."""
    vectors = np.zeros((tree.n_nodes, max(tree.n_nodes - 1, 1)))
    for node in range(tree.n_nodes):  # parents come before children
        for child in (tree.left[node], tree.right[node]):
            if child >= 0:
                vectors[child] = vectors[node]
                vectors[child, child - 1] = 1.0
    return vectors * tree.sign[:, None]


def leaf_coordinates(
    tree: PathTree, leaves: np.ndarray, n_components: int, bandwidth: float | None
) -> np.ndarray:
    """Laplacian eigenmap (Belkin & Niyogi 2003) of training rows, as coordinates of their leaves.

    With K_ij = exp(-|t_i - t_j|^2 / bandwidth^2) between rows and D its row sums, the coordinates are
    D^(-1/2) times the leading eigenvectors of D^(-1/2) K D^(-1/2), without the constant one.
    They are scaled to mean square 1 over the rows.

    Parameters
    ----------
    tree : PathTree
    leaves : ndarray of int
        The leaf of each training row.
    n_components : int
    bandwidth : float or None
        None: the root mean squared distance between rows.

    Returns
    -------
    ndarray of shape (n_nodes, n_components)
        Zeros for nodes that are no leaves; leaves without training rows by the Nyström formula.
    """
    counts = np.bincount(leaves, minlength=tree.n_nodes).astype(np.float64)
    ends = np.flatnonzero(tree.sign != 0)
    vectors, weight = leaf_paths(tree)[ends], counts[ends]
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    squares = np.maximum(lengths[:, None] + lengths - 2.0 * vectors @ vectors.T, 0.0)
    share = weight / weight.sum()
    width = float(share @ squares @ share) if bandwidth is None else bandwidth**2
    kernel = np.exp(-squares / max(width, 1e-12))
    degree = kernel @ weight
    half = np.sqrt(weight / degree)
    values, basis = np.linalg.eigh(half[:, None] * kernel * half)
    kept = np.argsort(-values)[1 : n_components + 1]
    values, basis = values[kept], basis[:, kept]
    usable = values > 1e-10 * max(values.max(initial=0.0), 1e-300)
    # K (weight/degree)^(1/2) basis / value is the eigenvector on every leaf, with rows or without
    spread = kernel @ (half[:, None] * basis) / np.where(usable, values, 1.0)
    spread = np.where(usable, spread / degree[:, None], 0.0)
    spread *= _signs(spread)
    scale = np.sqrt(share @ spread**2)
    out = np.zeros((tree.n_nodes, n_components))
    out[ends, : len(kept)] = spread / np.where(scale > 0, scale, 1.0)
    return out


def _signs(columns: np.ndarray) -> np.ndarray:
    """Make the entry of largest size of each column positive: eigenvectors have no sign."""
    if columns.size == 0:
        return np.ones(columns.shape[1])
    top = columns[np.argmax(np.abs(columns), axis=0), np.arange(columns.shape[1])]
    return np.where(top < 0, -1.0, 1.0)
