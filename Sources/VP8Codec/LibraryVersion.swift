import CVPX

/// The library behind this module.
package enum VP8Library {
    /// The version of libvpx that is loaded, as in "v1.12.0".
    package static var version: String {
        guard let text = unsafe vpx_codec_version_str() else { return "" }
        return unsafe String(cString: text)
    }
}
