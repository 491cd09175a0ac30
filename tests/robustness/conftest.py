"""The campaign is a program of its own, in processes of its own: it is not collected."""

collect_ignore = ["calls.py", "campaign.py", "generator.py"]
