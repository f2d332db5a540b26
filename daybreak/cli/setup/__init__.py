"""The commands of the first hour: a new deployment, the doctor, the demo."""
