package journal

// OS returns the file system below a folder.
func OS(root string) FS { return nil }
