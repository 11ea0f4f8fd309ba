import Glibc
import MediaCore

/// The reason why a media file could not be written or read.
package struct MediaFileError: Error, Hashable, Sendable {
    /// The kind of error, for a program to act on.
    package struct Code: Hashable, Sendable {
        /// The code's name, stable, for logs.
        package let name: String

        private init(_ name: String) { self.name = name }

        /// A file with that name exists already; files are never overwritten.
        package static let fileExists = Code("fileExists")
        /// There is no file, or no directory, with that name.
        package static let notFound = Code("notFound")
        /// The system does not permit it.
        package static let notPermitted = Code("notPermitted")
        /// The name belongs to a device, a pipe, a link or the like, which a file must not replace.
        package static let notRegular = Code("notRegular")
        /// The disk or the quota is full, or the file has reached the largest size that the system allows.
        package static let storageFull = Code("storageFull")
        /// The file was removed while it was being written.
        package static let removed = Code("removed")
        /// The reader of our output has gone.
        package static let readerGone = Code("readerGone")
        /// The reader of our output does not read it.
        package static let readerStalled = Code("readerStalled")
        /// The system has no thread left.
        package static let outOfResources = Code("outOfResources")
        /// The system reported another failure; `status` holds its `errno`.
        package static let systemFailure = Code("systemFailure")
        /// The file has a completely different format.
        package static let wrongFormat = Code("wrongFormat")
        /// The file is of the right kind, but uses something that we don't read.
        package static let unsupported = Code("unsupported")
        /// The file contradicts its format.
        package static let damaged = Code("damaged")
        /// The file ends in the middle of something.
        package static let truncated = Code("truncated")
        /// The reader was told to stop before all data had arrived.
        package static let interrupted = Code("interrupted")
        /// The data comes from a pipe, which cannot go back.
        package static let notRewindable = Code("notRewindable")
        /// A running program's pictures were asked for, and this is a file on a disk.
        package static let notLive = Code("notLive")
        /// The first frame of a file must be a keyframe, and this one was not.
        package static let startsWithoutKeyframe = Code("startsWithoutKeyframe")
        /// A picture has another size than the file.
        package static let wrongSize = Code("wrongSize")
    }

    /// The operation that failed.
    package enum Operation: String, Hashable, Sendable {
        /// Creating a new file.
        case create
        /// Creating a directory for files, or checking that it accepts files.
        case makeDirectory = "make the directory"
        /// Adding to a file.
        case write
        /// Completing a file's header and index.
        case finish
        /// Opening a file and reading its header.
        case open
        /// Reading a frame.
        case read
        /// Going back to the first frame.
        case rewind
    }

    /// The kind of error.
    package let code: Code
    /// The operation that failed.
    package let operation: Operation
    /// The file, as the caller named it; `-` is standard input or output.
    package let path: String
    /// The system's `errno`, if the system reported the failure.
    package let status: Int32?
    /// Where in the file the error is, in bytes, if that is known.
    package private(set) var offset: Int64?
    /// The sentence after the colon.
    private let reason: String

    /// Creates an error whose reason is the file's content or use.
    package init(_ code: Code, _ operation: Operation, _ path: String, _ reason: String) {
        self.code = code
        self.operation = operation
        self.path = path
        self.status = nil
        self.reason = reason
    }

    /// Creates an error that lies in the file's content, at the byte `offset`.
    init(_ code: Code, _ operation: Operation, _ path: String, at offset: Int64, _ reason: String) {
        self.init(code, operation, path, reason)
        self.offset = offset
    }

    /// Creates an error that the system reported as `status`.
    package init(_ operation: Operation, _ path: String, status: Int32) {
        self.operation = operation
        self.path = path
        self.status = status
        (code, reason) = Self.meaning(of: status, operation)
    }

    /// Creates the error for a file that was removed while it was being written.
    package init(removed path: String) {
        let advice = "start anew, and remove it afterwards"
        self.init(.removed, .write, path, "it, or its directory, was removed meanwhile; \(advice)")
    }

    /// Creates the error for a link in place of a directory, which leads nowhere.
    package init(danglingLink path: String) {
        let advice = "make that directory, or name another"
        self.init(.notFound, .makeDirectory, path, "it is a link to a directory that does not exist; \(advice)")
    }

    /// Creates the error for a file where a running program's pictures were asked for.
    package init(notLive path: String) {
        self.init(.notLive, .open, path, "it is a file, and no pipe of a running program; play it as a clip")
    }

    /// Creates the same error for the file that the caller knows as `path`.
    init(_ error: MediaFileError, naming path: String) {
        code = error.code
        operation = error.operation
        self.path = path
        status = error.status
        offset = error.offset
        reason = error.reason
    }

    private static func meaning(of status: Int32, _ operation: Operation) -> (Code, String) {
        switch status {
        case ENOTDIR where operation == .makeDirectory:
            (.systemFailure, "it, or a directory above it, is a file; name another")
        case ENOENT where operation == .makeDirectory:
            (.notFound, "this file system takes no new directories; name another")
        case EACCES where operation == .makeDirectory, EPERM where operation == .makeDirectory,
            EROFS where operation == .makeDirectory:
            (.notPermitted, "permission denied; check the owner and mode of it and of the one above (ls -ld)")
        case EEXIST:
            (.fileExists, "it exists already and is never overwritten; choose another name, or move it away")
        case ENOENT where operation == .create, ENOTDIR:
            (.notFound, "its directory does not exist; create that first (mkdir -p)")
        case ENOENT:
            (.notFound, "there is no such file; check the name")
        case EACCES, EPERM, EROFS:
            (.notPermitted, "permission denied; check the owner and mode of the file and its directory (ls -l)")
        case ENOSPC, EDQUOT:
            (.storageFull, "there is no space left for it; free some, or choose another disk")
        case EFBIG:
            (
                .storageFull,
                "it is as long as its file system, such as FAT with 4 GiB, or ulimit -f allows; choose another disk"
            )
        case EPIPE:
            (.readerGone, "the program that read it has closed the pipe; start that program again")
        case EISDIR:
            (.systemFailure, "it is a directory; name a file in it")
        case EMFILE, ENFILE:
            (.systemFailure, "too many files are open; raise the limit (ulimit -n)")
        case ENAMETOOLONG:
            (.systemFailure, "its name is too long; choose a shorter one")
        case EIO:
            (.systemFailure, "the disk failed; check it, and the kernel's log (dmesg)")
        default:
            (.systemFailure, "\(text(of: status)); check the file system that it lies on")
        }
    }

    private static func text(of status: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
            guard let base = buffer.baseAddress, unsafe strerror_r(status, base, buffer.count) == 0 else {
                return "system error"
            }
            return unsafe String(cString: base)
        }
    }
}

extension MediaFileError: CodedError {
    /// The name of `code`.
    package var codeName: String { code.name }
}

extension MediaFileError: CustomStringConvertible {
    /// What failed, why, and what to do about it.
    package var description: String {
        let file = path == "-" ? "the standard \(isOutput ? "output" : "input")" : path
        return "Cannot \(operation.rawValue) \(file): \(reason)"
    }

    private var isOutput: Bool { [.create, .makeDirectory, .write, .finish].contains(operation) }
}
