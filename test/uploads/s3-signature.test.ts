import t from 'tap'
import { presign, signRequest } from '../../plugins/uploads/s3/signature.ts'

// The examples of https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html and
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
const credentials = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', region: 'us-east-1',
}
const now = new Date('2013-05-24T00:00:00Z')
const host = 'examplebucket.s3.amazonaws.com'
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
const signatureOf = (authorization = '') => /Signature=(\w+)$/.exec(authorization)?.[1]

t.test('13.3 requests are signed as the examples of Signature Version 4 are', async (t) => {
  const get = { method: 'GET', host, path: '/test.txt', query: {} }
  const range = signRequest(get, { range: 'bytes=0-9' }, EMPTY, credentials, now)
  t.equal(signatureOf(range['authorization']), 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41')
  const put = signRequest(
    { method: 'PUT', host, path: '/test%24file.text', query: {} },
    { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
    '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072', credentials, now
  )
  t.equal(signatureOf(put['authorization']), '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd')
  const list = { method: 'GET', host, path: '/', query: { prefix: 'J', 'max-keys': '2' } }
  t.equal(
    signatureOf(signRequest(list, {}, EMPTY, credentials, now)['authorization']),
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'
  )
  t.equal(
    presign(get, 86400, credentials, now)['X-Amz-Signature'],
    'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404'
  )
})
