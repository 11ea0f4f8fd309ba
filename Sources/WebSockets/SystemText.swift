import Glibc

/// The system's text for an `errno`.
func systemText(_ status: Int32) -> String {
    var bytes = [CChar](repeating: 0, count: 128)
    guard unsafe strerror_r(status, &bytes, bytes.count) == 0 else { return "error \(status)" }
    return unsafe bytes.withUnsafeBufferPointer { unsafe $0.baseAddress.map { unsafe String(cString: $0) } ?? "" }
}
