/// The arguments as the system passes them: bytes, of whatever encoding.
package enum RawArguments {
    /// The sentence about the first argument that is not UTF-8; `nil` if all are.
    ///
    /// Swift replaces such bytes silently, and a program would use another file, room or identity than it was given.
    package static var problem: String? {
        for number in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = unsafe CommandLine.unsafeArgv[number] else { break }
            if unsafe String(validatingCString: argument) == nil {
                return "Argument \(number) is not valid UTF-8; give names and paths in UTF-8."
            }
        }
        return nil
    }
}
