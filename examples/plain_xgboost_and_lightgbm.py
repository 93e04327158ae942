"""
Objectives in plain XGBoost and LightGBM
========================================

You have a training script and want to keep it: take the objective only.
"""

import lightgbm as lgb
import numpy as np
import xgboost as xgb

from toprank import datasets, metrics, objectives

data = datasets.make_card_fraud(12_000, fraud_rate=0.02, random_state=0)
early = data.extra["day"].to_numpy() < 45
X = data.X.select_dtypes("number").to_numpy()
y = data.y
train, test = (X[early], y[early]), (X[~early], y[~early])

# %%
# XGBoost
# -------
# ``for_xgboost()`` is what ``xgb.train`` takes as ``obj``.
settings = {"max_depth": 5, "eta": 0.1, "nthread": 1, "seed": 0, "disable_default_eval_metric": 1}
matrix = xgb.DMatrix(*train[:1], label=train[1])
for name in ("logistic", "ap_sigmoid", "lambda_map"):
    booster = xgb.train(
        {**settings, "base_score": 0.0}, matrix, 100, obj=objectives.get(name).for_xgboost()
    )
    scores = booster.predict(xgb.DMatrix(test[0]), output_margin=True)
    print(f"XGBoost, {name:>11}: AP {metrics.average_precision(test[1], scores):.3f}")

# %%
# XGBoost has objectives of its own for lists. One list of thousands of rows is not what they were made
# for.
ranking = xgb.DMatrix(train[0], label=train[1], qid=np.zeros(len(train[1]), int))
booster = xgb.train({**settings, "objective": "rank:map"}, ranking, 100)
scores = booster.predict(xgb.DMatrix(test[0]))
print(f"XGBoost's own rank:map: AP {metrics.average_precision(test[1], scores):.3f}")

# %%
# LightGBM
# --------
# ``for_lightgbm()`` is what the parameter ``objective`` takes.
for name in ("logistic", "ap_sigmoid"):
    booster = lgb.train(
        {
            "objective": objectives.get(name).for_lightgbm(),
            "learning_rate": 0.1,
            "num_threads": 1,
            "verbose": -1,
            "seed": 0,
        },
        lgb.Dataset(*train[:1], label=train[1]),
        num_boost_round=100,
    )
    scores = booster.predict(test[0], raw_score=True)
    print(f"LightGBM, {name:>11}: AP {metrics.average_precision(test[1], scores):.3f}")
