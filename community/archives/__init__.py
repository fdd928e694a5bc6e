"""Archives that members bring from other sites."""
