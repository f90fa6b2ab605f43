"""The scikit-learn contract: labels in all their forms, and the estimators."""
