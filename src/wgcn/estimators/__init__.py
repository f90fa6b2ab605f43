"""The scikit-learn contract: the estimators."""
