import Glibc

/// The descriptors 0 to 2.
package enum StandardStreams {
    /// Opens those that are closed; call it before anything else opens a file or socket.
    ///
    /// A socket or file would get such a number otherwise, and then the program's output. They stay open in a program
    /// that takes this one's place.
    package static func openMissing() {
        var number: Int32
        repeat { number = unsafe open("/dev/null", O_RDWR) } while (0...STDERR_FILENO).contains(number)
        close(number)
    }
}
