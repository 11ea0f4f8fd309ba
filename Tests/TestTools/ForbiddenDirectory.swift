import Glibc
package import Testing

/// The directory of sysfs, in which nobody can create files, not even root.
package enum ForbiddenDirectory {
    /// `nil` where there is none, as in a bare root without `/sys`.
    package static let path: String? = {
        // Tried, because it may be an ordinary directory, or mounted read-only, which is another error.
        if mkdir("/sys/nothing", 0o700) == 0 {
            rmdir("/sys/nothing")
            return nil
        }
        return errno == EPERM || errno == EACCES ? "/sys" : nil
    }()

    /// Why a test that needs it is skipped.
    package static let absence: Comment = "nothing here refuses root; mount sysfs at /sys"
}
