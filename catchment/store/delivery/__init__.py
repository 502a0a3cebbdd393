"""Events, webhooks and watches."""
