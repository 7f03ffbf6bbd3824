"""How the touched rows move; one file each."""
